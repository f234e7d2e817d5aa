"""Rules as cases: a position in text, an action, and what it changes. They run on every engine.

A case says what changes; everything else must stay as it was. The dice are those of the position's
`game` line, so a case holds on each engine alike; most don't depend on them at all.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hackmatrix.game import native
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.saving import state_from_dict
from hackmatrix.game.engine.text import drawing, read_fact, state_from_text, state_to_text
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.board import SIZE, Content
from hackmatrix.game.rules.rewards import REWARD_PARTS

Data = dict[str, Any]
Parts = dict[str, int]


class Play(Protocol):
    """A game under way in some engine."""

    def valid_actions(self) -> list[int]:
        """The mask, as ascending numbers."""

    def step(self, action: int) -> tuple[Data, Parts, list[int]]:
        """Take an action; returns the state after it, the parts in units of 0.005, the mask."""


class Engine(Protocol):
    """Something that plays by the rules."""

    def from_dict(self, data: Data) -> Play:
        """Go on from a state as `Game.to_dict` writes it."""

    def after(self, states: Sequence[Data], action: int) -> list[Data]:
        """Take the same action in each of at most `jax_games.GAMES` games; the states after it."""


class PythonPlay:
    def __init__(self, data: Data) -> None:
        self.game = Game.from_dict(data)

    def valid_actions(self) -> list[int]:
        return self.game.valid_actions()

    def step(self, action: int) -> tuple[Data, Parts, list[int]]:
        parts = self.game.step(action).parts
        return self.game.to_dict(), parts, self.game.valid_actions()


class PythonEngine:
    def from_dict(self, data: Data) -> Play:
        return PythonPlay(data)

    def after(self, states: Sequence[Data], action: int) -> list[Data]:
        return [PythonPlay(data).step(action)[0] for data in states]


def _jax() -> Engine:
    # Imported here, so that whoever runs the Python engine alone doesn't wait for JAX.
    from jax_rule_engine import JaxEngine

    return JaxEngine()


def _native() -> Engine:
    from native_games import NativeEngine

    return NativeEngine()


ENGINES: dict[str, Callable[[], Engine]] = {"python": PythonEngine, "jax": _jax}
if native.available:
    ENGINES["native"] = _native


@dataclass(frozen=True)
class Case:
    """One sentence of the rules.

    Attributes:
        rule: the sentence.
        before: a position in text (`docs/positions.md`).
        do: the actions by name, `!` before one that is invalid; empty: only the mask matters.
        changes: a drawing of the board after the last action, lines of facts, or both. With a
            drawing, pieces may have moved as drawn. Lines of enemies, transmissions, flags and
            owned programs name all of them (`no enemy`: none are left); `player at 1,2 hp 2` and
            `stage 2 turn 0` only what changed; `cell 1,2 data points 3` all of that cell;
            `saved 2` the number of saved states. `turn`, dice and saved states may change unless
            they are named. The type of a transmission may be `any`.
        pays: the parts of the last action that are not zero, in units of 0.005; the step penalty
            is understood.
        valid: the mask at the end by name, None if it does not matter.
    """

    rule: str
    before: str
    do: str
    changes: list[str]
    pays: Parts
    valid: str | None


def read_cases(path: Path) -> list[Case]:
    """The cases in a text file, in this form:

        == a sentence of the rules
        .. .. .. .. .. X.
        (the position; or `as above`: the last one written out; more facts may follow)
        > right WAIT
        turn 2
        (what changes)
        pays kills 60
        valid up right

    Lines that begin with `#` are for the reader.
    """
    cases: list[Case] = []
    written: list[str] = []
    for block in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
        rule, *lines = [line for line in block.splitlines() if line and line[0] != "#"]
        above = lines[0] == "as above"
        lines[:above] = written * above
        special = {line.split()[0]: line.split()[1:] for line in lines if _is_special(line)}
        action = next((i for i, line in enumerate(lines) if line[0] == ">"), len(lines))
        before = [line for line in lines[:action] if not _is_special(line)]
        changes = [line for line in lines[action + 1 :] if not _is_special(line)]
        written = written if above else before
        pays, valid = special.get("pays", []), special.get("valid")
        cases.append(
            Case(
                rule,
                "\n".join(before),
                " ".join(special.get(">", [])),
                changes,
                {name: int(units) for name, units in zip(pays[::2], pays[1::2], strict=True)},
                None if valid is None else " ".join(valid),
            )
        )
    return cases


def _is_special(line: str) -> bool:
    return line.split()[0] in (">", "pays", "valid")


def data_of(text: str) -> Data:
    """The state of a position in text."""
    return Game(state_from_text(text)).to_dict()


def number_of(name: str) -> int:
    """The number of an action."""
    return ACTION_NAMES.index(name)


def names_of(actions: Sequence[int]) -> str:
    """The names of actions, as one line."""
    return " ".join(ACTION_NAMES[action] for action in actions)


def play(engine: Engine, before: str | Data, do: str) -> tuple[Data, Parts, str]:
    """Take actions by name; returns the state, the parts of the last action, the mask by name."""
    data = data_of(before) if isinstance(before, str) else before
    game = engine.from_dict(data)
    mask = game.valid_actions()
    parts: Parts = {}
    for name in do.split():
        action = number_of(name.removeprefix("!"))
        assert (action in mask) == (not name.startswith("!")), f"{name}; mask: {names_of(mask)}"
        data, parts, mask = game.step(action)
    return data, parts, names_of(mask)


def check(engine: Engine, case: Case) -> None:
    """Play a case and compare everything."""
    before = data_of(case.before)
    after, parts, mask = play(engine, before, case.do)
    if case.valid is not None:
        assert mask == case.valid
    if not case.do:
        return
    lines = [line.split() for line in case.changes]
    drawn = lines[:SIZE] if lines and len(lines[0]) == SIZE and len(lines[0][0]) == 2 else []
    expected = _expected(before, after, lines[len(drawn) :], moves=bool(drawn))
    assert as_text(after) == as_text(expected)
    if drawn:
        assert drawing(after) == [" ".join(line) for line in drawn]
    assert list(parts) == list(REWARD_PARTS)
    step_penalty = 0 if case.do.split()[-1].startswith("!") else -2
    assert parts == {**dict.fromkeys(REWARD_PARTS, 0), "step_penalty": step_penalty, **case.pays}


def as_text(data: Data) -> str:
    """A state as a failing test shows it."""
    return state_to_text(state_from_dict({**data, "saved": []})) + f"saved {len(data['saved'])}"


def _expected(before: Data, after: Data, lines: list[list[str]], *, moves: bool) -> Data:
    free = ("stream", "episode", "clock", "turn", "saved")
    expected = {**before, **{name: after[name] for name in free}}
    expected["player"], expected["cells"] = dict(before["player"]), list(before["cells"])
    if moves:
        expected["player"] = _moved([before["player"]], [after["player"]])[0]
        for pieces in ("enemies", "transmissions"):
            expected[pieces] = _moved(before[pieces], after[pieces])
    heads = {" ".join(line[:2]) if line[0] == "no" else line[0] for line in lines}
    for kind, pieces in (("enemy", "enemies"), ("transmission", "transmissions")):
        if heads & {kind, f"no {kind}"}:
            expected[pieces] = []
    for line in lines:
        _change(expected, after, line)
    return expected


def _moved(before: list[Data], after: list[Data]) -> list[Data]:
    """The pieces of before on the places of after, as far as they are the same ones."""
    if len(before) != len(after):
        return before
    places = ("row", "col", "last")
    return [
        old | {k: new[k] for k in places if k in new}
        for old, new in zip(before, after, strict=True)
    ]


def _change(expected: Data, after: Data, line: list[str]) -> None:
    match line:
        case ["no", _]:
            pass
        case ["saved", count]:
            assert len(after["saved"]) == int(count)
        case ["flags", *_]:
            expected.update(show=False, calm=False, step=False)
            read_fact(expected, line, whole=True)
        case ["player", "at", place, *facts]:
            row, col = map(int, place.split(","))
            expected["player"] |= {"row": row, "col": col}
            read_fact(expected, ["player", *facts], whole=True)
        case ["cell", place, content, *facts]:
            assert Content[content.upper()].name.lower() == content
            row, col = map(int, place.split(","))
            expected["cells"][row * SIZE + col] = {"content": content}
            read_fact(expected, ["cell", place, *facts], whole=True)
        case _:
            read_fact(expected, line, whole=True)
    if line[:2] == ["transmission", "any"]:
        place = len(expected["transmissions"]) - 1
        expected["transmissions"][place]["type"] = after["transmissions"][place]["type"]
