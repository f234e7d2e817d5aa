"""The keys of a terminal, and what each asks of a session."""

import sys
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.ui.session import navigation as travel
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS
from hackmatrix.ui.session.session import Message, Session
from hackmatrix.ui.terminal.screen_text import best

PACE = 0.25  # seconds between the agent's actions
_DIRECTIONS = {"up": 0, "down": 1, "left": 2, "right": 3}
HELP = (
    "arrows move, S siphons, letters run programs, , and . look back and on, [ and ] go to other "
    "variations, N new game, T threats, Ctrl+C ends"
)
WATCH_HELP = (
    "Space plays and pauses, Enter one action of the agent, 1-9 its suggestions, / next surprise, "
    "' next unsure move; " + HELP
)


def check_terminal() -> None:
    """Raises `UserError` if input or output is no terminal."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise UserError("--terminal needs a terminal")


def message_of(session: Session, key: str) -> Message | None:
    """The session's message for a key; None if it has none."""
    node = session.tree.nodes[session.at]
    if key in _DIRECTIONS:
        return {"do": "act", "action": _DIRECTIONS[key]}
    if key == "s":
        return {"do": "act", "action": SIPHON}
    for number, letter in enumerate(PROGRAM_KEYS.values()):
        if key == letter:
            return {"do": "act", "action": FIRST_PROGRAM + number}
    line = travel.line(session)
    positions = {
        ",": node.parent,
        ".": line[node.step + 1] if len(line) > node.step + 1 else None,
        "home": 0,
        "end": line[-1],
        "[": travel.variation(session, -1),
        "]": travel.variation(session, 1),
        "/": travel.surprise(session),
        "'": travel.unsure(session),
    }
    if (place := positions.get(key)) is not None and place not in (-1, session.at):
        return {"do": "go", "node": place}
    if key == "n":
        return {"do": "new"}
    if session.controls is not None and not node.over:
        if key in ("\n", "."):
            return {"do": "agent"}
        if key == "end":
            return {"do": "agent", "steps": 100}
        if key.isdecimal() and key != "0":
            return _suggested_action(session, int(key))
    return None


def _suggested_action(session: Session, index: int) -> Message | None:
    agent: dict[str, Any] = session.handle({"do": "go", "node": session.at})["agent"]
    ranked = best(agent["probabilities"])
    return {"do": "act", "action": ranked[index - 1][0]} if index <= len(ranked) else None
