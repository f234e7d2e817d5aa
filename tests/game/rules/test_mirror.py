"""A mirrored board: what the player sees of it is what it saw before, mirrored."""

import random

import numpy as np
import pytest
from lockstep_starts import full, new, quiet, rich
from paths import ROOT

from hackmatrix.game.engine.observation import observe
from hackmatrix.game.foresight.python_layout import tactical_numbers
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.board import CELLS, SIZE
from hackmatrix.game.rules.mirror import AXES, COLUMNS, ROWS, mirrored_actions, mirrored_features
from hackmatrix.game.rules.observation import PLANE
from hackmatrix.game.rules.tactical import GROUPS, START, TACTICAL_SIZE

BOARD = np.arange(CELLS).reshape(SIZE, SIZE)
PLAYER = len(PLANE) * CELLS  # the byte of a record that holds its cell
# Of cells that are equally good, the first one counts: for siphoning, as the daemon of D_BOM, as
# the block of a program.
BY_TIES = {"go_to_best", "best_distance", "best_here", "program_near"}
BY_TIES |= {"struck", "killed", "hits_after", "fewest_after"}


def mirrored_record(record: bytes, axis: int) -> bytes:
    cells = np.flip(BOARD, axis).reshape(-1)
    planes = np.frombuffer(record[:PLAYER], np.uint8).reshape(len(PLANE), CELLS)[:, cells]
    return planes.tobytes() + bytes([cells[record[PLAYER]]]) + record[PLAYER + 1 :]


def test_directions_change_and_all_else_is_done_as_before() -> None:
    names = [[ACTION_NAMES[action] for action in mirrored_actions(axis)] for axis in AXES]
    assert names[ROWS] == ["down", "up", "left", "right", *ACTION_NAMES[4:]]
    assert names[COLUMNS] == ["up", "down", "right", "left", *ACTION_NAMES[4:]]


def test_directions_cells_and_the_line_of_a_feature_change_places() -> None:
    rows, columns = (mirrored_features(axis) for axis in AXES)
    up, line = START["go_valid"], START["line"]
    assert (rows[up], columns[up]) == (up + 1, up)
    assert [rows[line + place] - line for place in range(12)] == [5, 4, 3, 2, 1, 0, *range(6, 12)]
    assert columns[line] == line
    assert columns[line + SIZE] == line + 2 * SIZE - 1


def test_both_ways_are_their_own_inverse_and_commute() -> None:
    for make in (mirrored_features, mirrored_actions):
        rows, columns = (np.array(make(axis)) for axis in AXES)
        for ways in (rows, columns):
            np.testing.assert_array_equal(ways[ways], range(len(ways)))
        np.testing.assert_array_equal(rows[columns], columns[rows])


@pytest.mark.thorough
@pytest.mark.parametrize("axis", AXES)
def test_the_layout_tactical_of_a_mirrored_board_is_mirrored(axis: int) -> None:
    rng = random.Random(5)
    records = [observe(start(rng)) for start in (new, rich, quiet, full) for _ in range(50)]
    seen = np.array([tactical_numbers(record) for record in records])
    mirrored = np.array([tactical_numbers(mirrored_record(record, axis)) for record in records])
    differs = mirrored != seen[:, mirrored_features(axis)]
    assert differs.shape == (200, TACTICAL_SIZE)
    assert differs.mean() < 0.001
    groups = {group.name: differs[:, START[group.name] :][:, : group.size] for group in GROUPS}
    assert {name for name, of_group in groups.items() if of_group.any()} <= BY_TIES


def test_documents_say_which_features_are_not_mirrored() -> None:
    text = (ROOT / "docs" / "networks.md").read_text()
    symmetric = text.partition("With `--symmetric`")[2].partition("\n## ")[0]
    assert all(f"`{name}`" in symmetric for name in BY_TIES)
