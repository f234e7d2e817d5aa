"""The table of metrics, and the sums they come from."""

import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.rules.actions import ACTION_NAMES
from hackmatrix.rules.rewards import REWARD_PARTS
from hackmatrix.training import measures
from hackmatrix.training.metrics import METRICS, Over, summarise


def test_names_are_unique_and_those_of_the_requirements() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    train = "total_loss pg_loss vf_loss entropy approx_kl clip_frac mean_reward num_episodes"
    train += " mean_episode_return mean_episode_length steps_per_second explained_variance"
    train += " grad_norm learning_rate"
    assert {f"train/{name}" for name in train.split()} <= set(names)
    assert {f"reward/{part}" for part in REWARD_PARTS} <= set(names)
    assert {f"actions/program/{name}" for name in ACTION_NAMES[5:]} <= set(names)


def test_sums_become_means_and_nothing_becomes_none() -> None:
    row = summarise(measures.nothing_measured())
    assert {metric.name for metric in METRICS if metric.over is not Over.LOOP} <= set(row)
    assert row.pop("train/num_episodes") == 0
    assert all(value is None for value in row.values())


def test_steps_of_hackmatrix_are_measured_by_name() -> None:
    ended = jnp.array([True, False, True])
    parts = np.zeros((3, 15), np.float32)
    parts[:, REWARD_PARTS.index("kills")] = [0.3, 0.6, 0.0]
    info = {
        "reward_parts": jnp.asarray(parts),
        "stage": jnp.array([2, 7, 3]),
        "won": jnp.array([True, True, False]),
        "score": jnp.array([10, 1000, 20]),
    }
    reward = jnp.asarray(parts.sum(axis=1))
    step = measures.of_step(
        reward, ended, jnp.array([5.0, 100.0, 7.0]), jnp.array([3, 90, 5]), info
    )
    sums = measures.added(measures.nothing_measured(), step, step)
    row = summarise(sums)
    assert row["reward/kills"] == pytest.approx(0.3)
    assert row["reward/victory"] == 0
    assert row["train/mean_reward"] == pytest.approx(0.3)
    assert row["train/mean_episode_return"] == pytest.approx(6)
    assert row["train/mean_episode_length"] == pytest.approx(4)
    assert row["train/num_episodes"] == 4
    assert row["stats/mean_stage"] == pytest.approx(2.5)
    assert row["stats/highest_stage"] == 3  # of finished games
    assert row["stats/win_rate"] == pytest.approx(0.5)
    assert row["stats/mean_score"] == pytest.approx(15)
    assert row["stats/programs_owned"] is None


def test_fractions_are_of_all_actions() -> None:
    actions = jnp.array([[0, 3, 4, 4], [5, 27, 27, 1]], jnp.uint8)
    row = summarise(measures.added(measures.nothing_measured(), measures.of_actions(actions)))
    assert row["actions/move_frac"] == pytest.approx(3 / 8)
    assert row["actions/siphon_frac"] == pytest.approx(2 / 8)
    assert row["actions/program_frac"] == pytest.approx(3 / 8)
    assert row["actions/program/PUSH"] == pytest.approx(1 / 8)
    assert row["actions/program/HACK"] == pytest.approx(2 / 8)
    assert row["actions/program/WAIT"] == 0


def test_the_highest_is_kept_over_time() -> None:
    steps = {"stats/highest_stage": jnp.array([[2.0, 1.0], [5.0, 3.0], [0.0, 0.0]])}
    total = measures.added(measures.nothing_measured(), measures.over_time(steps))
    assert summarise(total)["stats/highest_stage"] == 5
