"""Section 3: valid actions, movement and attacks by direction."""

from hackmatrix.game.engine.combat import attack
from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.programs import can_run
from hackmatrix.game.engine.state import Enemy, State, Transmission
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import NEIGHBOUR, Content


def valid_actions(state: State) -> list[int]:
    """The valid actions, ascending."""
    valid = [d for d in range(NUM_DIRECTIONS) if can_go(state, d)]
    if state.player.siphons >= 1:
        valid.append(SIPHON)
    valid += [FIRST_PROGRAM + p for p in sorted(state.owned) if can_run(state, p)]
    return valid


def is_valid(state: State, action: int) -> bool:
    """Whether an action 0..27 is among `valid_actions`."""
    if action < SIPHON:
        return can_go(state, action)
    if action == SIPHON:
        return state.player.siphons >= 1
    return can_run(state, action - FIRST_PROGRAM)


def can_go(state: State, direction: int) -> bool:
    """Whether the next cell in a direction is free or holds an enemy to attack."""
    cell = NEIGHBOUR[state.player.cell][direction]
    if cell is None:
        return False
    return not state.cells[cell].is_block or bool(state.enemies_on(cell))


def target(state: State, direction: int) -> Enemy | Transmission | None:
    """The enemy or transmission that an attack in a direction hits, at any distance."""
    cell = NEIGHBOUR[state.player.cell][direction]
    while cell is not None:
        on_cell = state.transmission_on(cell) or next(iter(state.enemies_on(cell)), None)
        if on_cell is not None or state.cells[cell].is_block:
            return on_cell
        cell = NEIGHBOUR[cell][direction]
    return None


def go(state: State, direction: int) -> tuple[int, bool]:
    """Attacks in a direction if there is a target, else walks one cell.

    Returns:
        The kills that give a reward, and whether the player picked up a data siphon.
    """
    struck = target(state, direction)
    if struck is not None:
        return attack(state, struck), False
    return 0, walk(state, direction)


def walk(state: State, direction: int) -> bool:
    """Walks to the neighbour; returns whether a data siphon was picked up there."""
    player = state.player
    to = NEIGHBOUR[player.cell][direction]
    assert to is not None
    state.events.append(Event(EventKind.PLAYER_MOVED, player.cell, to))
    player.cell = to
    if state.cells[to].content != Content.SIPHON:
        return False
    player.add(siphons=1)
    state.cells[to].content = Content.EMPTY
    state.events.append(Event(EventKind.PICKED_UP, to))
    return True
