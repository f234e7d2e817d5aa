"""The events of an action as far as the player sees them, as JSON data."""

from collections.abc import Iterator
from typing import Any

from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.board import col, row

_CRYPTOG = "cryptog"


def visible_events(events: tuple[Event, ...], before: State, after: State) -> list[dict[str, Any]]:
    """The events that the player sees.

    A cryptog that leaves the player's sight has no `to`, one that comes into it no `cell`.

    Args:
        events: of one action.
        before: the state before the action.
        after: the state after it.
    """
    return list(_visible_kind(events, before, after))


def _visible_kind(
    events: tuple[Event, ...], before: State, after: State
) -> Iterator[dict[str, Any]]:
    here, show = before.player.cell, before.show
    for event in events:
        if event.kind == EventKind.PLAYER_MOVED and event.to is not None:
            here = event.to
        if event.kind == EventKind.UNDONE:
            here, show = after.player.cell, after.show
        if event.kind == EventKind.PROGRAM_RAN and event.piece == "show":
            show = True
        if event.kind == EventKind.STAGE_BEGAN:
            show = False
        if event.piece == _CRYPTOG and not show:
            hidden = _visible_part(event, here)
            if hidden is None:
                continue
            event = hidden
        facts = {"kind": event.kind.value, **event._asdict()}
        yield {name: value for name, value in facts.items() if value is not None}


def _visible_part(event: Event, here: int) -> Event | None:
    """An event of a cryptog as seen from a cell; None if nothing of it is."""
    if event.kind == EventKind.LANDED:
        # That its transmission is gone is seen, so is the mark where it was last.
        return event if _in_line(event.cell, here) else event._replace(piece=None)
    cell = event.cell if _in_line(event.cell, here) else None
    to = event.to if _in_line(event.to, here) else None
    return None if cell is None and to is None else event._replace(cell=cell, to=to)


def _in_line(cell: int | None, here: int) -> bool:
    return cell is not None and (row(cell) == row(here) or col(cell) == col(here))
