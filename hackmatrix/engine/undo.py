"""Section 8, UNDO: what is saved, when it is saved, and how it is restored.

Saved is everything in `Position`. Positions are saved at the end of every enemy turn that takes
place, forgotten when a stage begins, and restored by the program UNDO.
"""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import TypeVar

from hackmatrix.engine.events import Event, EventKind
from hackmatrix.engine.state import Cell, Enemy, Player, Position, State, Transmission
from hackmatrix.rules.programs import MAX_SAVED_STATES

_T = TypeVar("_T")


def save(state: State) -> None:
    """Save the position; the newest 4 are kept."""
    state.saved = [*state.saved, snapshot(state)][-MAX_SAVED_STATES:]


def restore(state: State) -> None:
    """Bring back the newest saved position and drop it."""
    newest = state.saved.pop()
    for f in fields(Position):
        setattr(state, f.name, getattr(newest, f.name))
    state.events.append(Event(EventKind.UNDONE))


def forget(state: State) -> None:
    """Drop all saved positions."""
    state.saved = []


def _copier(kind: type[_T]) -> Callable[[_T], _T]:
    """What copies one piece, several times as fast as `copy.copy`."""
    values = attrgetter(*(f.name for f in fields(kind)))  # type: ignore[arg-type]
    return lambda piece: kind(*values(piece))


_copy_cell, _copy_player = _copier(Cell), _copier(Player)
_copy_enemy, _copy_transmission = _copier(Enemy), _copier(Transmission)


def snapshot(position: Position) -> Position:
    """An independent copy of a position; of a state, one of its position alone."""
    return Position(
        player=_copy_player(position.player),
        cells=[_copy_cell(cell) for cell in position.cells],
        enemies=[_copy_enemy(enemy) for enemy in position.enemies],
        transmissions=[_copy_transmission(piece) for piece in position.transmissions],
        owned=list(position.owned),
        turn=position.turn,
        show=position.show,
        calm=position.calm,
        atk_uses=position.atk_uses,
    )
