"""HackMatrix's columns in evaluations, and its metrics of a step in training."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax_info import whole_info
from paths import ROOT

from hackmatrix.environments.hackmatrix.env import measure
from hackmatrix.environments.hackmatrix.metric_table import METRICS, report
from hackmatrix.environments.interface.environment import StepRecord
from hackmatrix.environments.interface.metric import Over
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.game.rules.actions import ACTION_NAMES, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.rewards import REWARD_PARTS


def test_what_is_told_of_four_games() -> None:
    actions = np.zeros((4, NUM_ACTIONS), np.int32)
    actions[:, 0] = 10
    actions[0, ACTION_NAMES.index("WAIT")] = 6
    told = report(
        PlayedGames(
            returns=np.zeros(4, np.float32),
            lengths=np.array([10, 20, 30, 2_000]),
            actions=actions,
            terminated=np.array([True, True, True, False]),
            info={
                "stage": np.array([1, 3, 8, 8]),
                "won": np.array([False, False, True, False]),
                "score": np.array([0, 4, 100, 8]),
            },
            final_observation=None,
        )
    )
    columns = {each.key: each.values.tolist() for each in told if isinstance(each, Column)}
    assert columns == {
        "mean_stages_cleared": [0, 2, 8, 7],
        "win_rate": [False, False, True, False],
        "mean_score": [0, 4, 100, 8],
    }
    (use,) = (each.values for each in told if isinstance(each, Breakdown))
    assert {name: number for name, number in use.items() if number} == {"WAIT": 1.5}


def step(action: int, could_siphon: bool = False, can_siphon: bool = False) -> StepRecord:
    def mask(siphon: bool) -> Any:
        return jnp.zeros(NUM_ACTIONS, bool).at[SIPHON].set(siphon)

    info = whole_info() | {
        "reward_parts": jnp.arange(len(REWARD_PARTS), dtype=jnp.float32),
        "stage": jnp.int32(3),
        "won": jnp.bool_(False),
        "score": jnp.int32(7),
        "programs_owned": jnp.int32(2),
    }
    return StepRecord(
        jnp.int32(action),
        mask(can_siphon),
        mask(could_siphon),
        jnp.float32(1),
        jnp.bool_(True),
        info,
    )


def test_a_metric_may_read_the_record_as_contributing_says() -> None:
    (recipe,) = re.findall(r"`(number_of\(info.*?\))`", (ROOT / "CONTRIBUTING.md").read_text())
    known = {"number_of": number_of, "info": step(SIPHON).info}
    assert eval(recipe, known).dtype == jnp.int32


def test_every_metric_of_a_step_is_measured() -> None:
    measured = measure(step(SIPHON))
    assert measured.keys() == {m.name for m in METRICS if m.over is not Over.EVALUATION}
    assert {m.name for m in METRICS if m.over is Over.CHANCES} == {
        name for name, value in measured.items() if isinstance(value, tuple)
    }
    assert measured["reward/score_gain"] == REWARD_PARTS.index("score_gain")
    assert measured["stats/mean_stage"] == measured["stats/highest_stage"] == 3


def test_an_action_is_a_move_a_siphoning_or_a_program() -> None:
    kinds = ("actions/move_frac", "actions/siphon_frac", "actions/program_frac")
    for action, expected in ((0, [1, 0, 0]), (3, [1, 0, 0]), (4, [0, 1, 0]), (14, [0, 0, 1])):
        measured = measure(step(action))
        assert [int(measured[kind]) for kind in kinds] == expected
        programs = {n for n, v in measured.items() if n.startswith("actions/program/") and v}
        assert programs == ({f"actions/program/{ACTION_NAMES[action]}"} if expected[2] else set())


@pytest.mark.parametrize(
    ("could", "can", "action", "expected"),
    [
        (False, True, SIPHON, (1, 1)),  # taken at the first chance
        (False, True, 0, (0, 1)),  # left
        (True, True, SIPHON, (0, 0)),  # no first chance
        (False, False, 0, (0, 0)),
    ],
)
def test_a_first_chance_to_siphon_begins_a_spell(
    could: bool, can: bool, action: int, expected: tuple[int, int]
) -> None:
    taken, chances = measure(step(action, could, can))["stats/siphon_first_chance_frac"]
    assert (int(taken), int(chances)) == expected
