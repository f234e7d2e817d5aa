"""What an evaluation says of games that are known."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.evaluation.games import Tally
from hackmatrix.evaluation.players import exit_player
from hackmatrix.evaluation.report import death_causes, summarise
from hackmatrix.rules.actions import ACTION_NAMES, NUM_ACTIONS
from hackmatrix.rules.observation import BYTE, ENEMY, RECORD_SIZE, RESOURCE

KEYS = {
    "episodes",
    "mean_return",
    "mean_return_ci",
    "mean_stages_cleared",
    "stages_cleared_ci",
    "win_rate",
    "win_rate_ci",
    "mean_length",
    "length_ci",
    "mean_score",
    "truncated",
    "program_use",
    "death_causes",
}


def record(cell: int, hp: int = 0, enemies: dict[int, int] | None = None) -> np.ndarray:
    """The last observation of a player on `cell`; enemies are cell -> type."""
    made = np.zeros(RECORD_SIZE, np.uint8)
    made[BYTE["cell"]], made[BYTE["hp"]] = cell, hp
    for where, kind in (enemies or {}).items():
        made[ENEMY + where] = kind + 1 | 1 << 3 | 1 << 6  # other bits of the plane are set too
    return made


def test_what_is_told_of_four_games() -> None:
    actions = np.zeros((4, NUM_ACTIONS), np.int32)
    actions[:, 0] = 10
    actions[0, ACTION_NAMES.index("WAIT")] = 6
    tally = Tally(
        returns=np.array([1.0, 2.0, 3.0, 1_000.0], np.float32),
        length=np.array([10, 20, 30, 2_000]),
        actions=actions,
        ended=np.array([True, True, True, False]),
        stage=np.array([1, 3, 8, 8]),
        won=np.array([False, False, True, False]),
        score=np.array([0, 4, 100, 8]),
        last=np.stack([record(0, 0, {1: 0}), record(0, 2), record(0, 3), record(0, 3)]),
    )
    report = summarise(tally)
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert set(told) == KEYS
    assert told["episodes"] == 4
    assert told["mean_return"] == pytest.approx(251.5)
    assert told["mean_stages_cleared"] == pytest.approx((0 + 2 + 8 + 7) / 4)
    assert told["win_rate"] == pytest.approx(0.25)
    assert told["mean_length"] == pytest.approx(515)
    assert told["mean_score"] == pytest.approx(28)
    assert told["truncated"] == 1
    assert told["program_use"]["WAIT"] == pytest.approx(1.5)
    assert sum(told["program_use"].values()) == pytest.approx(1.5)
    # A win is no death, nor is a game that was cut off.
    assert {k: v for k, v in told["death_causes"].items() if v} == {"virus": 1, "invalid_action": 1}
    for mean, interval in (
        ("mean_return", "mean_return_ci"),
        ("mean_stages_cleared", "stages_cleared_ci"),
        ("win_rate", "win_rate_ci"),
        ("mean_length", "length_ci"),
    ):
        low, high = told[interval]
        assert low <= told[mean] <= high

    table = report.table().splitlines()
    assert table[1].startswith("return          251.500  [")
    assert table[-2] == "programs a game WAIT 1.50"
    assert table[-1] == "deaths by       virus 1  invalid_action 1"


def test_another_environment_has_no_stages() -> None:
    tally = Tally(
        returns=np.ones(3),
        length=np.ones(3, int),
        actions=np.ones((3, 2), int),
        ended=np.ones(3, bool),
        stage=None,
        won=None,
        score=None,
        last=np.zeros((3, 1), np.uint8),
    )
    told = summarise(tally).as_dict()
    assert told["mean_stages_cleared"] is None
    assert told["win_rate_ci"] is None
    assert told["program_use"] == {}
    labels = [line[:16].strip() for line in summarise(tally).table().splitlines()]
    assert labels == ["games", "return", "length", "cut off"]


@pytest.mark.parametrize("last", [np.zeros((3, 1), np.uint8), (np.zeros(3), np.zeros(3))])
def test_another_environment_may_tell_what_hackmatrix_tells(last: Any) -> None:
    tally = Tally(
        returns=np.ones(3),
        length=np.ones(3, int),
        actions=np.ones((3, NUM_ACTIONS), int),
        ended=np.ones(3, bool),
        stage=np.ones(3, int),
        won=np.array([True, False, False]),
        score=np.array([1, 2, 3]),
        last=last,
    )
    told = summarise(tally).as_dict()
    assert told["win_rate"] == pytest.approx(1 / 3)
    assert told["mean_score"] == 2
    assert told["mean_stages_cleared"] is None
    assert told["program_use"] == told["death_causes"] == {}
    labels = [line[:16].strip() for line in summarise(tally).table().splitlines()]
    assert labels == ["games", "return", "win rate", "length", "score", "cut off"]


def test_a_death_counts_for_the_kind_next_to_the_player() -> None:
    games = [
        record(0, 0, {1: 0}),
        record(14, 0, {20: 1, 0: 3}),  # the cryptog is far away
        record(14, 0, {13: 2, 15: 2}),
        record(14, 0, {8: 3}),
        record(14, 0, {8: 3, 13: 0}),
        record(5, 0, {6: 0}),  # cell 6 is on the next row, no neighbour of 5
        record(5, 1, {4: 0}),  # alive
    ]
    assert death_causes(np.stack(games)) == {
        "virus": 1,
        "daemon": 1,
        "glitch": 1,
        "cryptog": 1,
        "several": 2,
        "invalid_action": 1,
    }


def test_the_exit_player_goes_down_the_distances() -> None:
    made = np.zeros((4, RECORD_SIZE), np.uint8)
    mask = np.zeros((4, NUM_ACTIONS), bool)
    made[:, BYTE["cell"]] = [0, 0, 14, 35]
    mask[0, [0, 3]] = mask[1, [0, 3]] = mask[2, :4] = True
    mask[3, [9, 12]] = True  # walled in
    made[:, RESOURCE : RESOURCE + 36] = 10 << 4 | 7  # distance 10, some resources
    made[0, RESOURCE + 6] = 4 << 4  # up of cell 0
    made[1, RESOURCE + 1] = 4 << 4 | 15  # right of cell 0
    made[2, RESOURCE + 8] = 2 << 4  # down of cell 14
    player = exit_player()
    chosen = player.choose((), jnp.asarray(made), jnp.asarray(mask), jnp.zeros(4))
    assert chosen.tolist() == [0, 3, 1, 9]
