"""Positions in text and as JSON data: read back exactly, and refused by name when wrong."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from paths import DOCS
from strategies import legal_states

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.fields import IllegalStateError

DOC = DOCS / "positions.md"

BOARD = """\
s. .. .. .. .. X.
.. .. .. .. .. ..
.. .. D. .. .. ..
.. .. .. .g .. ..
.. .. .. .. .. ..
.@ .. .. .. .+ ..
"""


@settings(max_examples=30)
@given(legal_states(ended=True))
def test_data_is_read_back_exactly(data: dict[str, Any]) -> None:
    assert Game.from_dict(data).to_dict() == data
    assert Game.from_dict(json.loads(json.dumps(data))).to_dict() == data


@settings(max_examples=30)
@given(legal_states(ended=True))
def test_text_is_read_back_exactly(data: dict[str, Any]) -> None:
    text = Game.from_dict(data).to_text()
    assert Game.from_text(text).to_dict() == data
    assert Game.from_text(text).to_text() == text


def test_what_is_left_out_is_as_in_a_new_game() -> None:
    data = Game.from_text(BOARD).to_dict()
    assert data["player"] == {
        "row": 0,
        "col": 0,
        "hp": 3,
        "credits": 0,
        "energy": 0,
        "siphons": 0,
        "attack": 1,
        "score": 0,
    }
    assert (data["stage"], data["interval"], data["next_task"]) == (1, 12, 12)
    assert data["enemies"] == [{"type": "glitch", "row": 2, "col": 3, "hp": 2}]
    assert data["transmissions"] == [{"type": "virus", "row": 0, "col": 4, "turns": 1}]
    assert data["exit"] == [5, 5]
    assert data["saved"] == []


def test_pieces_without_a_line_come_in_reading_order() -> None:
    text = BOARD.replace(".. .. .. .g", ".d .. .. .g").replace(".. .. D. ..", ".. .. D. .c")
    enemies = Game.from_text(text).to_dict()["enemies"]
    assert [enemy["type"] for enemy in enemies] == ["cryptog", "daemon", "glitch"]


def test_indented_and_with_empty_lines() -> None:
    text = f"{BOARD}turn 4\nplayer hp 2\nsaved\n{BOARD}turn 3\n"
    loose = "\n\n" + "\n\n".join(f"   {line} " for line in text.splitlines())
    assert Game.from_text(loose).to_dict() == Game.from_text(text).to_dict()


def test_drawn_is_who_stands_first() -> None:
    text = BOARD + "enemy glitch 2,3\nenemy daemon 2,3\nenemy virus 0,0\ntransmission virus 0,4\n"
    game = Game.from_text(text)
    assert game.to_text().startswith(BOARD)
    assert len(game.state.enemies) == 3


# --- what cannot be read -------------------------------------------------------------------------

WRONG = [
    ("", "expected 6 lines of board, got 0"),
    (BOARD[:-20], "expected 6 lines of board, got 5"),
    (BOARD.replace(".g", ".x"), "line 4: no cell is drawn as '.x'"),
    (BOARD.replace(" .g", ""), "line 4: expected 6 cells of two characters"),
    (BOARD.replace(".@", ".."), "line 6: the drawing has no player (@)"),
    (BOARD.replace(".g", ".@"), "line 4: drawn '.. .. .. .@ .. ..', but the facts say"),
    (BOARD.replace("X.", ".."), "exit: missing"),
    (
        BOARD.replace("s.", "X."),
        "cells: the exit must be on the cell `exit` names and nowhere else",
    ),
    (BOARD + "enemy glitch 2,4", "line 4: drawn '.. .. .. .g .. ..', but the facts say"),
    (BOARD + "transmission virus 1,4", "line 5: drawn '.. .. .. .. .. ..', but the facts say"),
    (BOARD + "enemy dog 2,3", "line 7: cannot read 'enemy dog 2,3'"),
    (BOARD + "enemy glitch 2,6", "line 7: cannot read 'enemy glitch 2,6'"),
    (BOARD + "cell 0,7 credits 1", "line 7: cannot read 'cell 0,7 credits 1'"),
    (BOARD + "cell 0,1 credits", "line 7: cannot read 'cell 0,1 credits'"),
    (BOARD + "cell 0,1 credits many", "line 7: cannot read 'cell 0,1 credits many'"),
    (BOARD + "player luck 3", "line 7: cannot read 'player luck 3'"),
    (BOARD + "flags shown", "line 7: cannot read 'flags shown'"),
    (BOARD + "luck 3", "line 7: cannot read 'luck 3'"),
    (BOARD + "enemy", "line 7: cannot read 'enemy'"),
    (BOARD + "over lost", 'over: expected null or one of won, died, invalid_action, got "lost"'),
    (BOARD + "player hp 4", "player.hp: expected 1..3, got 4"),
    (BOARD + "cell 0,1 points 3", "cells[1].points: unknown field"),
    (BOARD + "enemy glitch 2,3 last 0,0", "enemies[0].last: unknown field"),
    (BOARD + "transmission dog 0,4", "transmissions[0].type: expected one of virus, daemon, "),
    (BOARD + "owned PUSH NAP", 'owned[1]: no program is called "NAP"'),
    (BOARD + "saved", "expected 6 lines of board, got 0"),
    (BOARD + "saved\n" + BOARD + "pending 1", "line 14: cannot read 'pending 1'"),
    (BOARD + "saved\n" + BOARD.replace("X.", ".."), "saved[0].cells: the exit must be on the cell"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_text_is_refused_by_line_or_field(text: str, message: str) -> None:
    with pytest.raises(IllegalStateError) as error:
        Game.from_text(text)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


# --- the documentation ---------------------------------------------------------------------------


def test_the_example_in_the_documentation() -> None:
    (example,) = re.findall(r"```text\n(.*?)```", DOC.read_text(), flags=re.DOTALL)
    game = Game.from_text(example)
    state = game.state
    assert game.to_text().startswith(example[: 6 * 18])
    assert Game.from_text(game.to_text()).to_dict() == game.to_dict()
    assert (state.dice.stream, state.dice.clock, state.stage, state.pending) == (7, 12, 2, 2)
    assert [enemy.type.name for enemy in state.enemies] == ["GLITCH", "CRYPTOG"]
    assert state.cells[26].holds_data
    # No fact of the example is lost: each line comes back, with the facts that it left to default.
    written = [set(line.split()) for line in game.to_text().splitlines()]
    for line in example.splitlines():
        assert any(set(line.split()) <= words for words in written), line


def test_the_documentation_names_every_word() -> None:
    doc = DOC.read_text()
    for stream in range(5):
        game = Game.new(stream)
        for word in re.findall(r"[a-z_]{4,}", game.to_text()):
            assert word in doc
