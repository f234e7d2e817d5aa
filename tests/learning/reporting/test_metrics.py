"""The tables of metrics, and the sums they come from."""

import re
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_info import whole_info
from paths import DOCS

import hackmatrix
from hackmatrix.environments.curriculum.levels import METRICS as OF_CURRICULUM
from hackmatrix.environments.hackmatrix.metric_table import METRICS
from hackmatrix.environments.interface.environment import StepRecord
from hackmatrix.environments.interface.metric import Metric, Over, Severity
from hackmatrix.environments.task_metrics import metrics_of_task
from hackmatrix.game.rules.actions import ACTION_NAMES, NUM_ACTIONS
from hackmatrix.game.rules.rewards import REWARD_PARTS
from hackmatrix.learning.algorithms.ppo import PPO
from hackmatrix.learning.reporting.alarms import alarms_of
from hackmatrix.learning.reporting.metric_tables import TABLES
from hackmatrix.learning.reporting.metrics import (
    LEARNER_METRICS,
    device_metrics,
    join_rows,
    summarise,
)
from hackmatrix.learning.trainer import measures

ALL = (*LEARNER_METRICS, *METRICS)
OF_TASK = metrics_of_task("{task}")

RANGES = ("entropy_frac", "approx_kl", "clip_frac")


def test_names_are_unique_and_those_of_the_requirements() -> None:
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)
    train = "total_loss pg_loss vf_loss entropy approx_kl clip_frac mean_reward num_episodes"
    train += " mean_episode_return mean_episode_length steps_per_second explained_variance"
    train += " grad_norm learning_rate"
    assert {f"train/{name}" for name in train.split()} <= set(names)
    assert {f"reward/{part}" for part in REWARD_PARTS} <= set(names)
    assert {f"actions/program/{name}" for name in ACTION_NAMES[5:]} <= set(names)
    stats = "highest_stage mean_stage win_rate mean_score programs_owned siphon_first_chance_frac"
    assert {f"stats/{name}" for name in stats.split()} <= set(names)
    evaluation = "mean_return mean_stages_cleared win_rate mean_length"
    assert {f"eval/{name}" for name in evaluation.split()} <= set(names)


def test_the_metrics_of_a_run_are_the_learners_and_the_environments() -> None:
    jumps = Metric("frog/jumps", Over.EPISODES, "jumps of a game")
    assert measures.metrics_of(SimpleNamespace(metrics=(jumps,)), PPO) == (*LEARNER_METRICS, jumps)
    assert measures.metrics_of(SimpleNamespace(), PPO) == LEARNER_METRICS
    assert measures.metrics_of(hackmatrix.make(), PPO) == ALL


def test_the_device_sums_all_but_what_the_loop_and_evaluations_measure() -> None:
    others = {metric.name for metric in ALL} - {m.name for m in device_metrics(ALL)}
    of_loop = {"train/num_episodes", "train/steps_per_second", "train/learning_rate"}
    assert others == of_loop | {m.name for m in ALL if m.name.startswith("eval/")}


no_sums = jax.jit(lambda: measures.zero_sums(ALL))


def test_sums_become_means_and_nothing_becomes_none() -> None:
    row = summarise(measures.by_name(no_sums(), ALL), ALL)
    assert set(row) == {m.name for m in device_metrics(ALL)} | {"train/num_episodes"}
    assert row.pop("train/num_episodes") == 0
    assert all(value is None for value in row.values())


def test_a_row_of_agents_has_means_of_those_that_measured_something() -> None:
    rows = [
        {"a": 1.0, "of one": 5.0, "broken": 1.0, "nothing": None},
        {"a": 3.0, "of one": None, "broken": np.inf, "nothing": None},
    ]
    row = join_rows(rows, [7, 8])
    assert row.pop("agents") == [{"seed": 7, **rows[0]}, {"seed": 8, **rows[1]}]
    assert np.isnan(row.pop("broken"))
    assert row == {"a": 2.0, "low/a": 1.0, "high/a": 3.0, "of one": 5.0, "nothing": None}


@pytest.mark.parametrize("name", ["train/entropy", "stats/siphon_first_chance_frac"])
def test_sums_without_a_measured_metric_are_an_error(name: str) -> None:
    sums = measures.by_name(no_sums(), ALL)
    del sums[name]
    with pytest.raises(KeyError, match=name):
        summarise(sums, ALL)


def test_steps_of_hackmatrix_are_measured_by_name() -> None:
    ended = jnp.array([True, False, True])
    parts = np.zeros((3, 15), np.float32)
    parts[:, REWARD_PARTS.index("kills")] = [0.3, 0.6, 0.0]
    info = whole_info(3) | {
        "reward_parts": jnp.asarray(parts),
        "stage": jnp.array([2, 7, 3]),
        "won": jnp.array([True, True, False]),
        "score": jnp.array([10, 1000, 20]),
        "programs_owned": jnp.array([1, 9, 4]),
    }
    nothing_valid = jnp.zeros((3, NUM_ACTIONS), bool)
    step = StepRecord(
        action=jnp.array([0, 4, 27]),
        mask=nothing_valid,
        previous_mask=nothing_valid,
        reward=jnp.asarray(parts.sum(axis=1)),
        ended=ended,
        info=info,
    )
    returns, lengths = jnp.array([5.0, 100.0, 7.0]), jnp.array([3, 90, 5])
    env = hackmatrix.make()

    @jax.jit
    def twice(step: StepRecord) -> Any:
        measured = measures.rows(measures.of_step(env, step, returns, lengths), ALL)
        once = measures.accumulate(measures.zero_sums(ALL), measured, ALL)
        return measures.accumulate(once, measured, ALL)

    row = summarise(measures.by_name(twice(step), ALL), ALL)
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
    assert row["stats/programs_owned"] == pytest.approx(2.5)
    assert row["stats/siphon_first_chance_frac"] is None  # siphoning was never valid
    fractions = [row[f"actions/{kind}_frac"] for kind in ("move", "siphon", "program")]
    assert fractions == pytest.approx([1 / 3] * 3)
    assert row["actions/program/HACK"] == pytest.approx(1 / 3)
    assert row["actions/program/PUSH"] == 0


def test_the_highest_is_kept_over_time() -> None:
    @jax.jit
    def total(of_steps: jax.Array) -> Any:
        steps = [measures.rows({"stats/highest_stage": stages}, ALL) for stages in of_steps]
        reached = measures.over_time(jnp.stack(steps), ALL)
        return measures.accumulate(measures.zero_sums(ALL), reached, ALL)

    sums = total(np.array([[2.0, 1.0], [5.0, 3.0], [0.0, 0.0]], np.float32))
    assert summarise(measures.by_name(sums, ALL), ALL)["stats/highest_stage"] == 5


def test_each_metric_has_one_row_of_the_tables() -> None:
    rows = [line for name in TABLES for line in TABLES[name]().splitlines() if "`" in line]
    names = [re.match(r"\| `([^`]+)` \|", row)[1] for row in rows]  # type: ignore[index]
    shared = r"(actions/program|reward)/.*"
    alike = ["actions/program/{program}", "reward/{part}"]
    metrics = [m.name for m in (*ALL, *OF_CURRICULUM, *OF_TASK) if not re.match(shared, m.name)]
    alarms = [rule.name for rule in alarms_of(ALL)]
    assert sorted(names) == sorted([*metrics, *alike, *alarms])
    learner = TABLES["learner"]()
    assert f"| `train/clip_frac` | {Over.UPDATES.value} |" in learner
    assert [re.findall(rf"`train/{name}`.*\| (.*) \|$", learner, re.M) for name in RANGES] == [
        ["at least 0.05"],
        ["at most 0.06"],
        ["at most 0.3"],
    ]


def test_the_page_has_the_tables_and_names_the_alarms() -> None:
    page = (DOCS / "metrics.md").read_text()
    assert re.findall(r"^<!-- table: (\w+) -->$", page, re.M) == list(TABLES)
    (row,) = re.findall(r"^\| critical \| warning \|\n.*\n(.*)", page, re.M)
    shown = [re.findall(r"`(\w+)`", cell) for cell in row.strip("|").split("|")]
    rules = alarms_of(ALL)
    assert shown == [
        [rule.name for rule in rules if rule.severity is severity]
        for severity in (Severity.CRITICAL, Severity.WARNING)
    ]
