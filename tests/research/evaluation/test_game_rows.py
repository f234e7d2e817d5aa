"""Rows of games as files that spreadsheets open."""

import csv
from pathlib import Path

import pytest

from hackmatrix.research.evaluation.game_rows import name_in, write_rows


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1.npz", "'=1+1.npz"),
        ("@a", "'@a"),
        ("-a", "'-a"),
        ("'=a", "''=a"),
        ("runs/a=b", "runs/a=b"),
    ],
)
def test_no_name_is_a_formula(name: str, cell: str, tmp_path: Path) -> None:
    path = tmp_path / "games.csv"
    write_rows(path, [(name, [{"game": 0, "seed": 1, "won": True}])])
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row == {"agent": cell, "game": "0", "seed": "1", "won": "1"}
    assert name_in(cell) == name
