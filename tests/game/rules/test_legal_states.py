"""Section 2: what a legal state is, and that the rules lead from one to the next."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_cases import ENGINES, Data, data_of
from strategies import legal_states

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.fields import IllegalStateError
from hackmatrix.game.rules.board import LIMIT

EMPTY = """
    X. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .@ .. .. .. .. ..
"""


@pytest.mark.thorough
@settings(max_examples=12)
@given(legal_states(), st.integers(0, 27))
def test_every_action_leads_from_a_legal_state_to_one(data: Data, action: int) -> None:
    for engine in ENGINES.values():
        play = engine().from_dict(data)
        valid = action in play.valid_actions()
        after, parts, mask = play.step(action)
        assert Game.from_dict(after).to_dict() == after
        assert (after["over"] == "invalid_action") == (not valid)
        assert not (after["over"] and mask)
        if not valid:
            assert after == {**data, "over": "invalid_action"}
            assert not any(parts.values())


Change = Callable[[Data], object]


def cell(index: int, **facts: Any) -> Change:
    return lambda data: data["cells"].__setitem__(index, facts)


def piece(kind: str, *pieces: Data) -> Change:
    return lambda data: data.update({kind: list(pieces)})


def top(**facts: Any) -> Change:
    return lambda data: data.update(facts)


def player(**facts: Any) -> Change:
    return lambda data: data["player"].update(facts)


def without(name: str) -> Change:
    return lambda data: data.pop(name)


VIRUS = {"type": "virus", "row": 1, "col": 1, "hp": 2}
ONE = {"type": "virus", "row": 1, "col": 1, "turns": 1}
REFUSED: list[tuple[Change, str]] = [
    (top(stage=0), "stage: expected 1..8, got 0"),
    (top(stage=9), "stage: expected 1..8, got 9"),
    (top(turn=-1), "turn: expected 0..32767, got -1"),
    (top(interval=LIMIT + 1), "interval: expected 0..32767, got 32768"),
    (top(next_task=1.0), "next_task: expected 0..32767, got 1.0"),
    (top(pending=True), "pending: expected 0..32767, got true"),
    (top(stream=2**32), "stream: expected 0..4294967295, got 4294967296"),
    (top(episode=-1), "episode: expected 0..4294967295, got -1"),
    (top(atk_uses=3), "atk_uses: expected 0..2, got 3"),
    (top(step=1), "step: expected true or false, got 1"),
    (top(over="lost"), 'over: expected null or one of won, died, invalid_action, got "lost"'),
    (top(over=[]), "over: expected null or one of won, died, invalid_action, got a list of 0"),
    (top(exit=[5, 6]), "exit: expected [row, col] with 0..5, got a list of 2"),
    (top(exit=35), "exit: expected [row, col] with 0..5, got 35"),
    (top(exit=[0, 5]), "cells: the exit must be on the cell `exit` names and nowhere else"),
    (cell(3, content="exit"), "cells: the exit must be on the cell `exit` names and nowhere else"),
    (without("exit"), "exit: missing"),
    (top(colour="red"), "colour: unknown field"),
    (player(hp=0), "player.hp: expected 1..3, got 0"),
    (player(hp=4), "player.hp: expected 1..3, got 4"),
    (player(row=6), "player.row: expected 0..5, got 6"),
    (player(credits=LIMIT + 1), "player.credits: expected 0..32767, got 32768"),
    (player(attack=0), "player.attack: expected 1..32767, got 0"),
    (player(name="x"), "player.name: unknown field"),
    (top(player=[]), "player: expected an object, got a list of 0"),
    (top(cells=[]), "cells: expected a list of 36, got a list of 0"),
    (cell(3, content="wall"), "cells[3].content: expected one of empty, data, program, question, "),
    (cell(3), "cells[3].content: missing"),
    (cell(3, content="empty", credits=4), "cells[3].credits: expected 0..3, got 4"),
    (
        cell(3, content="empty", credits=1, energy=1),
        "cells[3].energy: a cell has credits or energy, not both, got 1",
    ),
    (cell(3, content="empty", points=1), "cells[3].points: unknown field"),
    (cell(3, content="siphon", spawn=1), "cells[3].spawn: unknown field"),
    (cell(3, content="data", points=10), "cells[3].points: expected 0..9, got 10"),
    (cell(3, content="data", spawn=100), "cells[3].spawn: expected 0..99, got 100"),
    (cell(3, content="data", program="WAIT"), "cells[3].program: unknown field"),
    (cell(3, content="data", holds_data=True), "cells[3].holds_data: unknown field"),
    (cell(3, content="program"), "cells[3].program: missing"),
    (cell(3, content="program", program="NAP"), "cells[3].program: expected one of PUSH, PULL, "),
    (cell(3, content="program", program="WAIT", points=1), "cells[3].points: unknown field"),
    (cell(3, content="question"), "cells[3].program: missing"),
    (
        cell(3, content="question", holds_data=True, program="WAIT"),
        "cells[3].program: unknown field",
    ),
    (piece("enemies", *[VIRUS] * 33), "enemies: expected a list of 0..32, got a list of 33"),
    (piece("enemies", VIRUS, {**VIRUS, "hp": 3}), "enemies[1].hp: expected 1..2, got 3"),
    (
        piece("enemies", {**VIRUS, "type": "dog"}),
        "enemies[0].type: expected one of virus, daemon, ",
    ),
    (piece("enemies", {**VIRUS, "type": []}), "enemies[0].type: expected one of virus, daemon, "),
    (piece("enemies", {**VIRUS, "col": 9}), "enemies[0].col: expected 0..5, got 9"),
    (piece("enemies", {**VIRUS, "last": [0, 0]}), "enemies[0].last: unknown field"),
    (
        piece("enemies", {**VIRUS, "type": "cryptog", "last": [0, 6]}),
        "enemies[0].last: expected [row, col] with 0..5, got a list of 2",
    ),
    (piece("enemies", {**VIRUS, "disabled": -1}), "enemies[0].disabled: expected 0..99, got -1"),
    (piece("transmissions", {**ONE, "turns": -1}), "transmissions[0].turns: expected 0..32767"),
    (piece("transmissions", {**ONE, "hp": 2}), "transmissions[0].hp: unknown field"),
    (
        piece("transmissions", ONE, {**ONE, "type": "daemon"}),
        "transmissions[1]: there is a transmission on this cell already",
    ),
    (
        lambda data: (cell(7, content="data")(data), piece("transmissions", ONE)(data)),
        "transmissions[0]: a transmission cannot stand on a block",
    ),
    (top(owned=["PUSH", "PUSH"]), "owned[1]: PUSH is owned already"),
    (top(owned=["NAP"]), 'owned[0]: no program is called "NAP"'),
    (top(owned=[[]]), "owned[0]: no program is called a list of 0"),
    (top(owned=None), "owned: expected a list of 0..23, got null"),
    (top(saved=[{}] * 5), "saved: expected a list of 0..4, got a list of 5"),
    (top(saved=[{}]), "saved[0].cells: missing"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_illegal_states_are_refused_by_name(change: Change, message: str) -> None:
    data = data_of(EMPTY)
    change(data)
    with pytest.raises(IllegalStateError) as error:
        Game.from_dict(data)
    assert str(error.value).startswith(message)


def test_a_saved_state_is_checked_as_the_state_is() -> None:
    data = Game.from_dict(data_of(EMPTY))
    data.step(0)
    whole = data.to_dict()
    (saved,) = whole["saved"]
    saved["enemies"] = [{**VIRUS, "hp": 9}]
    with pytest.raises(IllegalStateError, match=r"saved\[0\]\.enemies\[0\]\.hp: expected 1\.\.2"):
        Game.from_dict(whole)


@pytest.mark.parametrize("data", [None, [], 7, "state", {}])
def test_what_is_no_state_at_all(data: Any) -> None:
    with pytest.raises(IllegalStateError):
        Game.from_dict(data)
