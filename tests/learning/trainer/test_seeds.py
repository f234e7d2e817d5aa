"""Many agents in one program: each is what its seed alone would make."""

import dataclasses
import io
import itertools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from interrupted_runs import after_update
from sharing_trainer import SharingTrainer
from small_runs import MINE, config_in, rows_of, updates_of
from small_runs import run_of as any_run_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.metric import Severity
from hackmatrix.learning.reporting.alarms import HealthOfAgents
from hackmatrix.learning.reporting.metrics import (
    LEARNER_METRICS,
    Interval,
    describe_agents,
    join_rows,
)
from hackmatrix.learning.run.loop import End, MakeEvaluate, RunOutcome
from hackmatrix.learning.settings.config import RunConfig, TrainOptions
from hackmatrix.learning.trainer import seeds
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.runs.checkpoints import best_checkpoint, load_checkpoint

pytestmark = [pytest.mark.usefixtures("shared_programs"), pytest.mark.thorough]

# Two agents in nearly all tests, so that they all run one program.
AGENTS = 2
SETTINGS: dict[str, Any] = {"num_seeds": AGENTS, "normalize_observations": True}


def run_of(folder: Path, options: TrainOptions = MINE, **changes: Any) -> RunOutcome:
    return any_run_of(folder, options, **(SETTINGS | changes))


@pytest.mark.slow
def test_side_by_side_they_are_the_same_but_for_rounding(tmp_path: Path) -> None:
    config = config_in(tmp_path, **SETTINGS)
    made_of = probes.Grid(), config.learning, config.network
    together = Trainer(*made_of, agents=config.run.seeds, over_agents=seeds.side_by_side)
    one_by_one = SharingTrainer(*made_of, agents=config.run.seeds)
    ours, theirs = (jax.device_get(each.run(each.init(4), 3)) for each in (together, one_by_one))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), ours, theirs)


def test_on_accelerators_they_learn_side_by_side() -> None:
    assert seeds.fastest("cpu") is seeds.one_by_one
    assert seeds.fastest("gpu") is seeds.fastest("tpu") is seeds.side_by_side


@pytest.mark.slow
def test_a_run_of_many_agents_is_logged_as_the_runs_of_their_seeds(tmp_path: Path) -> None:
    outcome = run_of(tmp_path / "many", seed=1)
    rows = rows_of(outcome.run)
    for k, seed in enumerate((1, 2)):
        options = TrainOptions(run_name=str(seed))
        alone = run_of(tmp_path / "alone", options, seed=seed, num_seeds=1)
        for row, theirs in zip(rows, rows_of(alone.run), strict=True):
            expected = {n: v for n, v in theirs.items() if n in row["agents"][k]}
            assert row["agents"][k] == {"seed": seed, **expected}
            of_all = {"update", "timesteps", "alarms"}
            of_all |= {f"train/{name}" for name in ("steps_per_second", "learning_rate")}
            assert theirs.keys() - expected.keys() <= of_all
        (params, theirs) = (
            load_policy(f).params for f in (outcome.run / f"seed_{seed}", alone.run)
        )
        jax.tree.map(np.testing.assert_array_equal, params, theirs)
    losses = [agent["train/total_loss"] for agent in rows[0]["agents"]]
    assert rows[0]["train/total_loss"] == pytest.approx(np.mean(losses))
    bounds = [rows[0][f"{bound}/train/total_loss"] for bound in ("low", "high")]
    assert bounds == pytest.approx(sorted(losses))  # of two agents
    assert rows[0]["timesteps"] == 3 * 64  # of each agent
    assert (outcome.updates, outcome.timesteps) == (7, 7 * 64)


def test_the_speed_is_that_of_all_agents_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()  # each call of the trainer takes one
    clock = SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr("hackmatrix.learning.run.schedule.time", clock)
    rows = rows_of(run_of(tmp_path).run)
    assert [row["train/steps_per_second"] for row in rows] == [AGENTS * 64] * 3


def test_trackers_are_told_means_intervals_and_the_files_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_files: list[str] = []
    monkeypatch.setattr(
        "hackmatrix.runs.trackers.Trackers.artifact",
        lambda _, __, files: told_files.extend(f.relative_to(tmp_path / "mine") for f in files),
    )
    run = run_of(tmp_path, tensorboard=True).run
    events = EventAccumulator(str(run / "events")).Reload()
    row = rows_of(run)[0]
    for name in ("train/total_loss", "low/train/total_loss", "high/train/total_loss"):
        assert events.Scalars(name)[0].value == pytest.approx(row[name], rel=1e-6)
    assert not [tag for tag in events.Tags()["scalars"] if "agent" in tag or "seed" in tag]
    params = [f"seed_{k}/params_7.{kind}" for k in range(AGENTS) for kind in ("json", "npz")]
    assert sorted(map(str, told_files)) == ["checkpoints/7", *params]


def test_the_interval_of_a_mean_is_that_of_student() -> None:
    # t(0.975) is 4.303 with 2 degrees of freedom, 12.706 with 1.
    every = -math.inf, math.inf
    three, two = [1.0, 2.0, 3.0], [1.0, 3.0]
    assert Interval.of(three, every) == pytest.approx((2, 2 - 4.3027 / 3**0.5, 4.4841), abs=1e-4)
    assert Interval.of(two, every) == pytest.approx((2, 2 - 12.7062, 14.7062), abs=1e-4)
    assert Interval.of([5.0]) == (5, -math.inf, math.inf)


def test_an_interval_holds_nothing_impossible() -> None:
    """As the return of CartPole from two seeds, which was said to be [-262.6, 329.2]."""
    assert Interval.of([10.0, 56.6], (8.0, 200.0)) == pytest.approx((33.3, 8, 200))
    assert Interval.of([10.0, 56.6]) == pytest.approx((33.3, 10, 56.6))
    many = [500.0] * 9 + [490.0]
    assert Interval.of(many) == pytest.approx((499, 499 - 2.2622, 500), abs=1e-4)


def test_a_row_of_many_agents_has_mean_interval_and_all_of_them() -> None:
    rows = [{"a": 1.0, "b": None, "c": None, "d": 1.0}, {"a": 3.0, "b": 4.0, "c": None, "d": 1.0}]
    rows[1]["d"] = math.nan
    row = join_rows(rows, (7, 8))
    assert row["a"] == 2
    assert (row["low/a"], row["high/a"]) == (1, 3)  # of two agents, what they have
    assert row["b"] == 4  # of the one that knows it; one value has no interval
    assert row["c"] is None
    assert math.isnan(row["d"])
    assert not {"low/b", "low/c", "low/d"} & row.keys()
    assert row["agents"] == [{"seed": 7, **rows[0]}, {"seed": 8, **rows[1]}]
    assert join_rows(rows[:1], (7,)) == rows[0]
    assert describe_agents(row, "a") == "2 [1, 3], best 3 (seed 8), worst 1 (seed 7)"
    assert describe_agents(row, "b") is None
    assert describe_agents(row, "c") is None
    assert describe_agents(rows[0], "a") is None


def test_a_resumed_run_of_many_agents_is_the_run_that_was_never_stopped(tmp_path: Path) -> None:
    run_of(tmp_path / "whole", save_interval=2)
    run_of(tmp_path / "cut", total_timesteps=4 * 64, save_interval=2)
    again = TrainOptions(resume=str(tmp_path / "cut" / "mine"))
    run_of(tmp_path / "cut", again, total_timesteps=7 * 64)
    cut, whole = tmp_path / "cut" / "mine", tmp_path / "whole" / "mine"
    # The row of the update at which it was stopped is one more than the other has.
    assert [row["update"] for row in rows_of(cut)] == [3, 4, 6, 7]
    (held, _), (expected, _) = (load_checkpoint(run / "checkpoints" / "7") for run in (cut, whole))
    for name in expected:
        np.testing.assert_array_equal(held[name], expected[name], err_msg=name)
    assert held["params.params.Dense_0.kernel"].shape[0] == 2  # a checkpoint holds all of them


def test_another_number_of_agents_can_not_go_on(tmp_path: Path) -> None:
    run = run_of(tmp_path).run
    rows = rows_of(run)
    for options in (TrainOptions(resume=str(run)), TrainOptions(resume=str(run), run_name="other")):
        with pytest.raises(UserError, match="holds 2 agents, --num-seeds asks for 3: leave it"):
            run_of(tmp_path, options, num_seeds=3)
    with pytest.raises(UserError, match=r"the 2 agents of seed 0 and on, --seed asks for 5"):
        run_of(tmp_path, TrainOptions(resume=str(run)), seed=5)
    assert rows_of(run) == rows
    assert not (tmp_path / "other").exists()
    with pytest.raises(UserError, match=r"mine: has 2 agents: choose one, such as .*/seed_0"):
        load_policy(run)


@pytest.mark.slow
def test_a_run_of_many_can_start_from_the_params_of_one(tmp_path: Path) -> None:
    file = run_of(tmp_path).run / "seed_1" / "final_params.npz"
    options = TrainOptions(run_name="new", resume=str(file))
    begun = run_of(tmp_path, options, normalize_observations=False)
    arrays, _ = load_checkpoint(begun.run / "checkpoints" / "0")
    expected = load_policy(file).params["params"]["Dense_0"]["kernel"]
    for kernel in arrays["params.params.Dense_0.kernel"]:
        np.testing.assert_array_equal(kernel, expected)
    assert len(set(arrays["seed"])) == AGENTS


def test_seeds_end_at_the_last_one() -> None:
    with pytest.raises(UserError, match="--seed 2147483647 with --num-seeds 2 goes beyond"):
        RunConfig(seed=2**31 - 1, num_seeds=2)


def without_agent(number: int) -> Callable[[TrainState], TrainState]:
    """Makes NaN of the params of one agent."""

    def poisoned(state: TrainState) -> TrainState:
        params = jax.tree.map(lambda p: p.at[number].multiply(jnp.nan), state.params)
        return dataclasses.replace(state, learner=state.learner.replace(params=params))

    return poisoned


def test_an_agent_that_is_lost_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_update(monkeypatch, 4, without_agent(1))
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, save_interval=2, on_unhealthy="stop")
    assert (outcome.end, outcome.saved) == (End.FINISHED, True)
    assert updates_of(outcome.run) == [2, 4, 6, 7]
    healthy, lost = outcome.run / "seed_0", outcome.run / "seed_1"
    assert [p.name for p in sorted(lost.glob("*.npz"))] == ["params_2.npz", "params_4.npz"]
    assert (healthy / "final_params.npz").exists()
    text = output.getvalue()
    assert text.count("params are not finite") == 1
    assert text.count("seed 1: params are not finite at update 6: not exported") == 1
    assert text.count("seed 1: train/entropy") == 1
    row = rows_of(outcome.run)[1]
    assert row["agents"][1]["train/total_loss"] is None
    assert math.isfinite(row["agents"][0]["train/total_loss"])


@pytest.mark.slow
def test_an_anomaly_names_its_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after_update(monkeypatch, 4, without_agent(1))
    output = io.StringIO()
    options = TrainOptions(run_name="mine", detect_anomaly=True)
    outcome = run_of(tmp_path, options, output=output, seed=8)
    assert outcome.end is End.ANOMALY
    assert "seed 9: not finite: params before the update, params.Dense_0" in output.getvalue()


def row_of(**entropies: float) -> dict[str, Any]:
    agents = [{"seed": int(seed[1:]), "train/entropy_frac": e} for seed, e in entropies.items()]
    return {"train/steps_per_second": 1.0, "agents": agents}


def test_an_alarm_names_the_agents_that_raise_it_and_stops_only_all_of_them() -> None:
    health = HealthOfAgents(LEARNER_METRICS)
    assert health.check(1, row_of(s3=0.7, s4=0.7, s5=0.7)) == []
    assert health.worst is None
    told_of = [alarm.message for alarm in health.check(2, row_of(s3=0.03, s4=0.7, s5=0.03))]
    assert len(told_of) == 1
    assert told_of[0].startswith("seeds 3, 5: train/entropy_frac")
    assert health.worst is None
    (again,) = health.check(3, row_of(s3=0.03, s4=0.03, s5=0.03))
    assert again.message.startswith("seed 4: train/entropy_frac")
    assert health.worst is Severity.WARNING
    health.check(4, row_of(s3=0.01, s4=0.03, s5=0.01))
    assert health.worst is Severity.WARNING
    health.check(5, row_of(s3=0.01, s4=0.01, s5=0.01))
    assert health.worst is Severity.CRITICAL


def scored(*scores: float) -> MakeEvaluate:
    """Evaluations with these results, agent by agent."""
    results = iter(scores)
    return lambda *_: lambda _: {"mean_return": next(results)}


def test_every_agent_is_evaluated_and_the_best_checkpoint_is_best_for_all(tmp_path: Path) -> None:
    make = scored(1, 3, 9, 5, 4, 6, 0, 1)  # two agents after updates 2, 4, 6 and 7
    run = run_of(tmp_path, make_evaluate=make, eval_interval=2).run
    rows = {row["update"]: row for row in rows_of(run) if "eval/mean_return" in row}
    means = {update: row["eval/mean_return"] for update, row in rows.items()}
    assert means == {2: 2.0, 4: 7.0, 6: 5.0, 7: 0.5}
    assert rows[4]["agents"] == [
        {"seed": 0, "eval/mean_return": 9},
        {"seed": 1, "eval/mean_return": 5},
    ]
    assert best_checkpoint(run) == (run / "checkpoints" / "4", 4)
    for seed, score in ((0, 9), (1, 5)):
        about = load_policy(run / f"seed_{seed}" / "best_params.npz").about
        assert (about["update"], about["config"]["seed"]) == (4, seed)
        assert about["evaluation"] == {"mean_return": score}

    # Where the run goes on from an earlier one, that is the best again.
    expected = [load_policy(run / f"seed_{seed}" / "params_2.npz").params for seed in (0, 1)]
    options = TrainOptions(resume=str(run / "checkpoints" / "2"), rewind=True)
    run_of(tmp_path, options, eval_interval=None, total_timesteps=3 * 64)
    for seed in (0, 1):
        folder = run / f"seed_{seed}"
        names = ["best_params.npz", "final_params.npz", "params_2.npz", "params_3.npz"]
        assert sorted(path.name for path in folder.glob("*.npz")) == names
        best = load_policy(folder / "best_params.npz")
        assert (best.about["update"], best.about["evaluation"]["mean_return"]) == (2, 2 * seed + 1)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), best.params, expected[seed])
