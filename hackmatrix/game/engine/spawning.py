"""Section 6: spawning of transmissions."""

from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.state import State, Transmission
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.enemies import EnemyType

_TYPES = tuple(EnemyType)


def line_of_fire(state: State) -> set[int]:
    """Cells in the player's row or column with no enemy and no block between."""
    stops = state.blocks() | {enemy.cell for enemy in state.enemies}
    line = set()
    for direction in range(4):
        cell = NEIGHBOUR[state.player.cell][direction]
        while cell is not None:
            line.add(cell)
            cell = None if cell in stops else NEIGHBOUR[cell][direction]
    return line


def spawn_cells(state: State) -> list[int]:
    """The cells where a transmission may spawn, ascending: outside the line of fire if possible."""
    occupied = state.blocks() | state.occupied() | {state.player.cell}
    empty = [cell for cell in range(CELLS) if cell not in occupied]
    fire = line_of_fire(state)
    return [cell for cell in empty if cell not in fire] or empty


def spawn(
    state: State, index: int, *, from_schedule: bool = False, from_siphon: bool = False
) -> None:
    """Spawns one transmission of a random type, if there is a cell for it.

    Args:
        state: the game.
        index: index of its draws, as `rules.chance` counts spawns.
        from_schedule: whether it is the scheduled spawn of a turn.
        from_siphon: whether it comes from siphoning.
    """
    cells = spawn_cells(state)
    if not cells:
        return
    cell = state.dice.choose(Site.SPAWN_CELL, cells, index)
    enemy_type = state.dice.choose(Site.SPAWN_TYPE, _TYPES, index)
    state.transmissions.append(Transmission(cell, 1, enemy_type, from_schedule, from_siphon))
    state.events.append(Event(EventKind.SPAWNED, cell))
