"""The words and deeds of a run and its evaluation where something is odd."""

import dataclasses
import io
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from interrupted_runs import after_update
from small_runs import config_in, rows_of, run_of, updates_of

from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.cli.main import main
from hackmatrix.cli.train import summary
from hackmatrix.core.errors import UserError
from hackmatrix.core.processes import command_name
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.report import Column, PlayedGames
from hackmatrix.learning.run.loop import End
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.jax_agents import make_evaluate
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.ranking import RankedAgent, Ranking
from hackmatrix.research.evaluation.report import Report, report_on

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("shared_programs")]


def test_an_interval_that_exceeds_the_run_is_told(tmp_path: Path) -> None:
    output = io.StringIO()
    run_of(tmp_path, output=output, save_interval=5_000_000, log_interval=100)
    told = "the interval of checkpoints, 5,000,000 updates, exceeds the run's 7 updates: one every"
    assert told in output.getvalue()
    assert "metrics, 100 updates, exceeds the run's 7 updates: one line at its end" in (
        output.getvalue()
    )


@pytest.mark.timeout(120)  # all that they stand for would take years to write
def test_aliases_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    path = tmp_path / "bomb.yaml"
    path.write_text("training:\n" + "".join(f"  {line}\n" for line in lines))
    with pytest.raises(UserError, match=r"bomb.yaml: .*aliases are not read"):
        read_config(path)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 5000, "more than 16 levels deep"),
        ("training: " + "{a: " * 20, "more than 16 levels deep"),
        ("# " + "é" * 2**15, "longer than 64 KB"),
        ("training:\n" + "".join(f"  k{i}: 1\n" for i in range(99_999)), "longer than 64 KB"),
        (f"training: {{seed: 0x{'f' * 9000}}}", "a number of 9002 characters"),
        ("training: {seed: !!bool x}", "is not a YAML file"),
        ("training: {[1]: 2}", "unhashable"),
    ],
)
def test_files_of_settings_have_bounds(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=told) as raised:
        read_config(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["010", "-010", "1:30", "1:30.5", "0_1"])
def test_numbers_that_yaml_reads_in_another_way_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(f"training: {{lr: {text}}}\n")
    with pytest.raises(UserError, match=f"{text} is no decimal number"):
        read_config(path)


@pytest.mark.parametrize(
    ("text", "number"), [("1_000", 1000), ("1e3", 1000), ("0", 0), ("1000.0", 1000), ("0x10", 16)]
)
def test_other_numbers_are_read(text: str, number: int, tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text(f"training: {{seed: {text}}}\n")
    assert read_config(path) == {"seed": number}


@pytest.mark.slow
def test_counts_are_right_after_another_number_of_games(tmp_path: Path) -> None:
    run_of(tmp_path, TrainOptions(run_name="short"), total_timesteps=4 * 64)
    (first,) = [row["train/num_episodes"] for row in rows_of(tmp_path / "short")][1:]
    run_of(tmp_path, total_timesteps=5 * 64, save_interval=4)
    rows = {}
    for run, source in (("logged", "short"), ("unlogged", "mine")):
        resumed = TrainOptions(resume=str(tmp_path / source / "checkpoints" / "4"), run_name=run)
        output = io.StringIO()
        settings = {"num_envs": 16, "total_timesteps": 4 * 64 + 128}
        outcome = run_of(tmp_path, resumed, output=output, **settings)
        assert (outcome.updates, outcome.timesteps) == (5, 384)
        assert "update 5/5  384 steps" in output.getvalue()
        rows[run] = rows_of(tmp_path / run)[-1]
    # The row of one includes update 4, which had not been logged yet when the other ended there.
    assert rows["unlogged"]["train/num_episodes"] == first + rows["logged"]["train/num_episodes"]


class Poor(probes.Grid):
    """Pays NaN at the goal."""

    def advance(self, key: Any, position: Any, action: Any) -> tuple[Any, Any, Any]:
        after, _, ended = super().advance(key, position, action)
        return after, jnp.where(ended, jnp.nan, 0.0), ended


def test_rewards_that_are_not_finite_are_one_line_and_strict_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "Poor", Poor, raising=False)
    argv = ["evaluate", "random", "--env", "probe_environments:Poor", "--episodes", "50"]
    assert main([*argv, "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("hackmatrix evaluate: error: the return of ")
    assert "of 50 games is not finite: the environment pays" in captured.err
    assert captured.err.count("\n") == 1
    told = json.loads(captured.out, parse_constant=lambda name: pytest.fail(name))
    assert told["mean_return"] is None
    assert told["mean_length"] > 0


def reported(env: Any, games: PlayedGames) -> Report:
    return report_on(report_of(env, games), games)


def games_of(returns: list[float]) -> PlayedGames:
    count = len(returns)
    return PlayedGames(
        returns=np.array(returns, np.float32),
        lengths=np.ones(count, np.int32),
        actions=np.ones((count, 4), np.int32),
        terminated=np.ones(count, bool),
        info={},
        final_observation=np.zeros(count),
    )


def test_an_agent_whose_score_is_nan_is_ranked_last() -> None:
    agents = [
        RankedAgent(seed, Path(f"seed_{seed}"), reported(probes.Grid(), games_of(returns)))
        for seed, returns in enumerate(([math.nan, 9.0], [1.0, 2.0], [3.0, 4.0]))
    ]
    assert [agent.seed for agent in Ranking(agents).agents] == [2, 1, 0]


def test_a_rate_that_is_0_for_every_agent_is_not_certain() -> None:
    class Winless(probes.Grid):
        def report(self, games: PlayedGames) -> list[Column]:
            return [Column("won", "win_rate", np.zeros(len(games.returns), bool))]

    report = reported(Winless(), games_of([0.0] * 500))
    told = Ranking([RankedAgent(seed, Path(f"seed_{seed}"), report) for seed in (0, 1)]).as_dict()
    low, high = told["win_rate_ci"]
    assert low == 0
    assert high == pytest.approx(0.00383, abs=1e-5)  # of 0 in 1,000 by Wilson


def broken(*agents: int) -> Callable[[TrainState], TrainState]:
    """Makes NaN of the params of these agents."""

    def nan(params: jax.Array, *, of_many: bool) -> jax.Array:
        return params.at[jnp.array(agents)].set(jnp.nan) if of_many else params * jnp.nan

    def poisoned(state: TrainState) -> TrainState:
        params = jax.tree.map(partial(nan, of_many=state.update.ndim > 0), state.params)
        return dataclasses.replace(state, learner=state.learner.replace(params=params))

    return poisoned


@pytest.mark.thorough
def test_params_that_are_nan_are_never_the_best_however_they_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_update(monkeypatch, 4, broken(0))
    scores = iter([1.0, 2.0, 99.0])
    output = io.StringIO()
    outcome = run_of(
        tmp_path,
        output=output,
        eval_interval=2,
        make_evaluate=lambda *_: lambda _: {"mean_return": next(scores)},
    )
    assert outcome.best == outcome.run / "checkpoints" / "4"
    assert "evaluation: update 6: mean_return nan\n" in output.getvalue()


@pytest.mark.slow
def test_params_are_judged_on_other_games_than_those_that_chose_them(tmp_path: Path) -> None:
    env, config = probes.Grid(), config_in(tmp_path, eval_episodes=64)
    network = Trainer(env, config.learning, config.network).network
    params = jax.jit(network.init)(jax.random.key(0))
    player = network_player("", network, params, greedy=False)
    judged, selected = (play(env, player, Limits(64, 0, first=first)) for first in (0, 2**30))
    assert judged.returns.tolist() != selected.returns.tolist()
    chosen = make_evaluate(env, network, config)(params)
    assert chosen == reported(env, selected).means()


@pytest.mark.slow
@pytest.mark.parametrize(("agents", "end"), [((0,), (End.FINISHED, 7)), ((0, 1), (End.ANOMALY, 6))])
def test_a_run_goes_on_while_the_params_of_one_agent_are_finite(
    agents: tuple[int, ...], end: tuple[End, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_update(monkeypatch, 4, broken(*agents))
    output = io.StringIO()
    settings = {"num_seeds": 2, "normalize_observations": True}  # as in test_seeds
    outcome = run_of(tmp_path, output=output, save_interval=2, **settings)
    assert (outcome.end, outcome.updates) == end
    is_told = "warning: no params are finite at update 6: the run ends" in output.getvalue()
    assert is_told == (len(agents) == 2)
    assert updates_of(outcome.run) == ([2, 4] if is_told else [2, 4, 6, 7])


def test_the_next_line_quotes_paths_and_offers_no_collapsed_run(tmp_path: Path) -> None:
    folder = tmp_path / "my runs; rm -rf"
    outcome = run_of(folder)._replace(end=End.SIGNAL, updates=5)
    course = Course(64, 7 * 64)
    lines = summary(outcome, course, TrainConfig())
    assert lines[-2] == f"next        {command_name()} evaluate '{folder}/mine/final_params.npz'"
    assert lines[-1] == f"            {command_name()} train --resume '{folder}/mine'"
    lines = summary(outcome._replace(collapsed=True), course, TrainConfig())
    assert not any("--resume" in line for line in lines)


@pytest.mark.slow
def test_a_collapsed_run_is_known(tmp_path: Path) -> None:
    settings = {"lr": 0.05, "ent_coef": 0.0, "num_envs": 32, "total_timesteps": 60 * 8 * 32}
    assert run_of(tmp_path, env=probes.Policy(), **settings).collapsed
    assert not run_of(tmp_path, TrainOptions(run_name="well")).collapsed


def test_an_evaluation_that_python_can_not_make_is_told(tmp_path: Path) -> None:
    output = io.StringIO()
    run_of(tmp_path, output=output, eval_interval=2)
    assert "warning: nothing is evaluated: eval_interval is set" in output.getvalue()


def test_stray_folders_and_files_are_no_checkpoints(tmp_path: Path) -> None:
    run_of(tmp_path, save_interval=3)
    checkpoints = tmp_path / "mine" / "checkpoints"
    (checkpoints / "999").mkdir()
    (checkpoints / "9").mkdir()
    (checkpoints / "9" / "notes.txt").write_text("mine")
    (checkpoints / "8").write_text("a file")
    (checkpoints / "007").symlink_to("7")
    assert updates_of(tmp_path / "mine") == [3, 6, 7]
    run_of(tmp_path, TrainOptions(resume=str(tmp_path / "mine")), total_timesteps=12 * 64)
    assert updates_of(tmp_path / "mine") == [3, 6, 7, 9, 12]
    assert (checkpoints / "9.stray" / "notes.txt").read_text() == "mine"
