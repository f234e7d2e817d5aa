"""All that the page shows of a position, as JSON data; nothing that the player does not see."""

from typing import Any

from hackmatrix.game.drawing.board import board
from hackmatrix.game.drawing.marks import Mark, SvgGroup
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine.game import Outcome
from hackmatrix.game.engine.state import State
from hackmatrix.game.foresight.visible_copy import threat, visible_copy
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.ui.session.cell_labels import cell_labels
from hackmatrix.ui.session.descriptions import describe_events
from hackmatrix.ui.session.preview import previews
from hackmatrix.ui.session.visible_events import visible_events

# Fields of a view that the board's marks show already.
_ON_BOARD = ("cells", "enemies", "transmissions", "fire", "last_seen", "exit")


def facts_of(state: State, *, reveal: bool = False) -> dict[str, Any]:
    """The page's facts about a state.

    Args:
        state: one game.
        reveal: also the hidden things, marked as such.

    Returns:
        `seen`, the numbers of the game; `board`, marks for each cell (`game/drawing/marks.py`);
        `labels`, sentences about each cell; `actions`, 28 previews; `threat`, 36 numbers of hits.
    """
    visible = view(state, reveal=reveal)
    return {
        "seen": {name: fact for name, fact in visible.items() if name not in _ON_BOARD},
        "board": [marks_json(group) for group in board(visible)],
        "labels": cell_labels(visible),
        "actions": previews(state),
        "threat": threat(visible_copy(state)),
    }


def facts_of_action(before: State, after: State, outcome: Outcome) -> dict[str, Any]:
    """The page's facts about the last action: `events`, `told`, `reward` and its `parts`."""
    events = visible_events(outcome.events, before, after)
    return {
        "events": events,
        "told": describe_events(events),
        "reward": outcome.reward,
        "parts": {name: part * UNIT for name, part in outcome.parts.items() if part},
    }


def marks_json(group: SvgGroup) -> dict[str, Any]:
    """A group of marks: shapes are lists of 5, lines of text objects with `text`."""
    marks: list[Any] = []
    for mark in group.marks:
        if isinstance(mark, SvgGroup):
            marks.append(marks_json(mark))
        elif isinstance(mark, Mark):
            marks.append(list(mark))
        else:
            marks.append(mark._asdict())
    return {"title": group.title, "x": group.x, "y": group.y, "scale": group.scale, "marks": marks}
