"""The labels of cells are sentences for a player."""

import random
import re

import pytest

from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.board import SIZE
from hackmatrix.ui.session.position_data import cell_labels

FIELD = re.compile(r"[a-z]_|\b(spawn|content|center|turns \d|disabled|True|False|None)\b|\d,\d|\{")
SENTENCES = re.compile(r"[A-Z0-9].*[a-z+V0-9]\.")


def test_labels_of_200_positions_are_sentences() -> None:
    labels = set()
    for stream in range(40):
        game, rng = Game.new(stream), random.Random(stream)
        for _ in range(5):
            labels.update(cell_labels(view(game.state, reveal=stream % 4 == 0)))
            for _ in range(5):
                if actions := game.valid_actions():
                    game.step(rng.choice(actions))
    assert len(labels) > 150
    for label in labels:
        assert SENTENCES.fullmatch(label), label
        assert not FIELD.search(label), label
        assert len(label) < 260, label


def label(cells: dict | None = None, **state: object) -> str:
    """The label of the cell in row 2, column 2, which holds these facts."""
    data = view(Game.new(0).state)
    data["cells"] = [{"content": "empty"} for _ in range(SIZE * SIZE)]
    data |= {"enemies": [], "transmissions": [], "last_seen": [], "owned": [], **state}
    data["cells"][2 * SIZE + 2] = cells or {"content": "empty"}
    return cell_labels(data)[2 * SIZE + 2]


AT = {"row": 2, "col": 2}


@pytest.mark.parametrize(
    ("expected", "cell", "state"),
    [
        ("Empty.", {}, {}),
        ("A data siphon: walk onto it to pick it up.", {"content": "siphon"}, {}),
        ("The exit: you win there.", {"content": "exit"}, {"stage": 8}),
        (
            "1 credit: siphon on this cell or beside it to take it.",
            {"content": "empty", "credits": 1},
            {},
        ),
        (
            "A data block: siphon beside it for 4 points; 4 transmissions will come, as the red "
            "number says.",
            {"content": "data", "points": 4, "spawn": 4},
            {},
        ),
        (
            "A block with ROW, which you own already; nothing will come. ROW: Damages all enemies "
            "in your row, through blocks.",
            {"content": "program", "program": "ROW"},
            {"owned": ["ROW"]},
        ),
        (
            "Daemon, 1 of 3 hp; moves one cell a turn; stunned for one turn; does not act for 2 "
            "turns.",
            {},
            {"enemies": [{"type": "daemon", **AT, "hp": 1, "stunned": True, "disabled": 2}]},
        ),
        (
            "Transmission: becomes a virus in 1 turn, unless you attack it first.",
            {},
            {"transmissions": [{"type": "virus", **AT, "turns": 1}]},
        ),
        (
            "Dashed hexagon: a hidden cryptog was last seen here, and may have moved on.",
            {},
            {"last_seen": [14]},
        ),
    ],
)
def test_a_label(expected: str, cell: dict, state: dict) -> None:
    assert label(cell, **state) == expected
