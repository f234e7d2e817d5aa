"""Playing and watching in a terminal: reads keys, and shows what they do."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.live import Live

from hackmatrix.core.errors import UserError
from hackmatrix.core.screen import Screen
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.ui.session import navigation as travel
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS
from hackmatrix.ui.session.session import Message, Session
from hackmatrix.ui.terminal.screen_text import best, screen

PACE = 0.25  # seconds between the agent's actions
_SEQUENCES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end",
}  # fmt: skip
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


def run(session: Session) -> None:
    """Plays or watches until Ctrl+C or the end of the input."""
    console = Screen()
    note = HELP if session.controls is None else WATCH_HELP
    is_playing, threats = False, True
    with _raw_keys(), Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            height = console.size.height
            live.update(screen(session, threats=threats, height=height, note=note), refresh=True)
            key = read_key(PACE if is_playing else None)
            note = ""
            if key == "end of input":
                return
            if key is None:
                is_playing = bool(session.handle({"do": "agent"}).get("added"))
                continue
            is_playing = key == " " and session.controls is not None and not is_playing
            if key == "?":
                note = HELP if session.controls is None else WATCH_HELP
            elif key == "t":
                threats = not threats
            elif (message := message_of(session, key)) is not None:
                note = session.handle(message).get("error", "")


def message_of(session: Session, key: str) -> Message | None:
    """What a key asks of the session; None if nothing."""
    node = session.tree.nodes[session.at]
    if key in _DIRECTIONS:
        return {"do": "act", "action": _DIRECTIONS[key]}
    if key == "s":
        return {"do": "act", "action": SIPHON}
    for number, letter in enumerate(PROGRAM_KEYS.values()):
        if key == letter:
            return {"do": "act", "action": FIRST_PROGRAM + number}
    line = travel.line(session)
    places = {
        ",": node.parent,
        ".": line[node.step + 1] if len(line) > node.step + 1 else None,
        "home": 0,
        "end": line[-1],
        "[": travel.variation(session, -1),
        "]": travel.variation(session, 1),
        "/": travel.surprise(session),
        "'": travel.unsure(session),
    }
    if (place := places.get(key)) is not None and place not in (-1, session.at):
        return {"do": "go", "node": place}
    if key == "n":
        return {"do": "new"}
    if session.controls is not None and not node.over:
        if key in ("\n", "."):
            return {"do": "agent"}
        if key == "end":
            return {"do": "agent", "steps": 100}
        if key.isdecimal() and key != "0":
            return _suggested(session, int(key))
    return None


def _suggested(session: Session, place: int) -> Message | None:
    agent: dict[str, Any] = session.handle({"do": "go", "node": session.at})["agent"]
    ranked = best(agent["probabilities"])
    return {"do": "act", "action": ranked[place - 1][0]} if place <= len(ranked) else None


def read_key(seconds: float | None) -> str | None:
    """The next key: a letter in lower case or a name; None if none comes in that time."""
    file = sys.stdin.fileno()
    if not select.select([file], [], [], seconds)[0]:
        return None
    text = os.read(file, 1).decode(errors="replace")
    if text in ("", "\x04"):  # the end, Ctrl+D
        return "end of input"
    while text[0] == "\x1b" and text not in _SEQUENCES and len(text) < 4:
        if not select.select([file], [], [], 0.02)[0]:
            break
        text += os.read(file, 1).decode(errors="replace")
    return _SEQUENCES.get(text, text.lower())


@contextmanager
def _raw_keys() -> Iterator[None]:
    """Keys are read as they are pressed, and not shown."""
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
