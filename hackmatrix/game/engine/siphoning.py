"""Section 7: siphoning, and the quality of a cell for it."""

from collections.abc import Iterable
from typing import NamedTuple

from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.state import Cell, State, saturate
from hackmatrix.game.rules.board import CELLS, CROSS, Content
from hackmatrix.game.rules.stages import MIN_INTERVAL, SIPHON_DELAY


def siphon(state: State) -> None:
    """Siphons the player's cell and its neighbours.

    The spawns of siphoned blocks become pending.
    """
    for cell in CROSS[state.player.cell]:
        if not state.cells[cell].siphoned:
            _take(state, state.cells[cell])
            state.events.append(Event(EventKind.SIPHONED, cell))
    state.cells[state.player.cell].center = True
    state.player.siphons -= 1
    state.interval = max(MIN_INTERVAL, state.interval - 1)
    state.next_task = saturate(state.next_task + SIPHON_DELAY)


def _take(state: State, cell: Cell) -> None:
    cell.siphoned = True
    if not cell.is_block:
        state.player.add(credits=cell.credits, energy=cell.energy)
        cell.credits = cell.energy = 0
        return
    if cell.content == Content.QUESTION:
        cell.content = Content.DATA if cell.holds_data else Content.PROGRAM
        cell.holds_data = False
    if cell.content == Content.DATA:
        state.player.add(score=cell.points)
    elif cell.program not in state.owned:
        state.owned.append(cell.program)
    state.pending = saturate(state.pending + cell.spawn)
    cell.spawn = 0


class _Yield(NamedTuple):
    """The gain of siphoning at a cell."""

    points: tuple[int, ...]  # of data blocks, ascending
    programs: frozenset[int]  # not owned yet
    credits: int
    energy: int


_NOTHING = _Yield((), frozenset(), 0, 0)


def _yield_at(state: State, cell: int) -> _Yield:
    """The gain of siphoning at a cell."""
    cross = [state.cells[c] for c in CROSS[cell] if not state.cells[c].siphoned]
    return _Yield(
        tuple(sorted(c.points for c in cross if c.is_data)),
        frozenset(c.program for c in cross if c.is_program) - set(state.owned),
        sum(c.credits for c in cross if not c.is_block),
        sum(c.energy for c in cross if not c.is_block),
    )


def missed_resources(state: State) -> tuple[int, int]:
    """Further credits and energy that a better cell would have given (siphon quality)."""
    here = state.player.cell
    own = _NOTHING if state.cells[here].is_block else _yield_at(state, here)
    better = [other for other in _candidates(state, own) if _better(other, own)]
    credits = max((other.credits - own.credits for other in better), default=0)
    energy = max((other.energy - own.energy for other in better), default=0)
    return credits, energy


def _candidates(state: State, own: _Yield) -> Iterable[_Yield]:
    cells = {cell for cell in range(CELLS) if not state.cells[cell].is_block}
    if own.points or own.programs:
        for block in CROSS[state.player.cell]:
            if state.cells[block].is_block and not state.cells[block].siphoned:
                cells &= set(CROSS[block])
    return (_yield_at(state, cell) for cell in cells)


def _better(other: _Yield, own: _Yield) -> bool:
    return (
        (other.points, other.programs) == (own.points, own.programs)
        and other.credits >= own.credits
        and other.energy >= own.energy
        and (other.credits, other.energy) != (own.credits, own.energy)
    )
