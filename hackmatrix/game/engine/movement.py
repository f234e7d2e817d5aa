"""Section 5: the cell that an enemy moves to."""

from collections.abc import Collection

from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.rules.board import CELLS, NEIGHBOURS, col, row
from hackmatrix.game.rules.enemies import EnemyType


def distances(goals: Collection[int], walls: Collection[int]) -> dict[int, int]:
    """Walking distance to the nearest goal from each cell with a path, by breadth-first search.

    A goal itself may be a wall. Other walls are never entered, so they have no distance.
    """
    distance = dict.fromkeys(goals, 0)
    frontier = [*goals]
    for cell in frontier:  # the list grows during the loop: breadth-first search
        for neighbour in NEIGHBOURS[cell]:
            if neighbour not in distance and neighbour not in walls:
                distance[neighbour] = distance[cell] + 1
                frontier.append(neighbour)
    return distance


def manhattan(a: int, b: int) -> int:
    """|row distance| + |col distance| of two cells."""
    return abs(row(a) - row(b)) + abs(col(a) - col(b))


def next_cell(state: State, enemy: Enemy) -> int:
    """The cell that an enemy that does not hit moves to; its own if it has to stay."""
    walls = set() if enemy.type == EnemyType.GLITCH else state.blocks()
    occupied = {other.cell for other in state.enemies if other is not enemy}
    occupied.update(transmission.cell for transmission in state.transmissions)

    step = _first_step(state, enemy, walls | occupied - {state.player.cell})
    if step is not None:
        return step
    step = _first_step(state, enemy, walls)
    if step is not None and step not in occupied:
        return step
    free = [n for n in NEIGHBOURS[enemy.cell] if n not in walls and n not in occupied]
    return min(free, key=lambda n: manhattan(n, state.player.cell), default=enemy.cell)


def _first_step(state: State, enemy: Enemy, blocked: set[int]) -> int | None:
    goal = state.player.cell
    if enemy.cell == goal or goal in blocked:
        return None
    distance = distances([goal], blocked)
    steps = [n for n in NEIGHBOURS[enemy.cell] if n in distance]
    return min(steps, key=distance.__getitem__, default=None)


def exit_distance(state: State) -> int:
    """Walking distance of the player to the exit, 0 without a path."""
    return _from_exit(state).get(state.player.cell, 0)


def exit_distances(state: State) -> list[int | None]:
    """Walking distance from the exit to each cell over cells without blocks, None if unreachable.

    The player's cell counts as free even if it is a block.
    """
    distance = _from_exit(state)
    return [distance.get(cell) for cell in range(CELLS)]


def _from_exit(state: State) -> dict[int, int]:
    return distances([state.exit], state.blocks() - {state.player.cell})
