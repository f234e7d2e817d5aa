"""The command `hackmatrix evaluate`: refusals, the table and the JSON."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.roster.batch_players import BatchPlayer
from hackmatrix.cli.main import main
from hackmatrix.environments.hackmatrix import HackMatrixEnv
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.game.rules.observation import FEATURE_SIZE
from hackmatrix.research.evaluation.games import EvaluationGames
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.runs.params import save_params

GAMES = ["--episodes", "30", "--max-steps", "60"]  # of HackMatrix, in all quick tests


@pytest.fixture(scope="module", autouse=True)
def shared_evaluations() -> Iterator[None]:
    """Fresh params that play the same number of games of HackMatrix share what is compiled."""
    programs: dict[Any, Any] = {}

    def shared(
        env: Environment, player: BatchPlayer, limits: Limits, **how: Any
    ) -> EvaluationGames:
        games = EvaluationGames(env, player, limits, **how)
        if isinstance(env, HackMatrixEnv):
            # Players without params are told apart by their names, networks by their shapes.
            kind = str(jax.tree.map(np.shape, player.params)) if player.params else player.name
            key = (repr(env), kind, limits.episodes, limits.max_steps)
            games._begin, games._go_on = programs.setdefault(key, (games._begin, games._go_on))
        return games

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hackmatrix.research.evaluation.jax_agents.EvaluationGames", shared)
        yield


def saved(folder: Path, features: int, actions: int = 28, **about: object) -> str:
    network = ActorCritic(actions, hidden_dim=4, num_layers=1)
    path = folder / "params_1.npz"
    shapes = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, features)))
    chance = np.random.default_rng(0)  # which needs no compiler
    draw: Callable[[Any], Any] = lambda x: chance.normal(size=x.shape, scale=0.1).astype(x.dtype)  # noqa: E731
    save_params(path, jax.tree.map(draw, shapes), about)
    return str(path)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["random", "exit", "--forbid", "ROW"], "--forbid goes with one agent"),
        (["scripted", "--forbid", "ROWS"], "--forbid: no program is called 'ROWS'; there are PUSH"),
        (
            ["random", "--env", "CartPole-v1", "--forbid", "ROW"],
            "--forbid goes with HackMatrix, whose programs it names; random plays CartPole-v1",
        ),
        (["random", "--sequential", "win_rate"], "--sequential goes with two agents"),
        (
            ["random", "exit", "--sequential", "win_rate", "--episodes", "150"],
            "--episodes 150: --sequential looks every 100 games: give a multiple",
        ),
        (["random", "--report", "page.pdf"], "--report page.pdf: must end in .html"),
        (["random", "--games", "games.txt"], "--games games.txt: must end in .csv"),
        (["missing.npz"], "missing.npz: no such file"),
        (
            ["random", "--episodes", "0"],
            "argument --episodes: must be at least 1 and at most 10000000, got",
        ),
        (["exit", "--env", "CartPole-v1"], "--env CartPole-v1 goes with `random` alone"),
        (["random", "--gredy"], "unknown argument --gredy, did you mean --greedy?"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *argv]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"hackmatrix evaluate: error: {message}")
    assert error.count("\n") == 1


def test_a_row_for_each_game_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "games.csv"
    short = ["--episodes", "5", "--max-steps", "30", "--seed", "2", "--json"]
    assert main(["evaluate", "exit", "scripted", *short, "--games", str(file)]) == 0
    agents = json.loads(capsys.readouterr().out)["agents"]
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["agent"] for row in rows] == ["exit"] * 5 + ["scripted"] * 5
    assert [(row["game"], row["seed"]) for row in rows] == [(str(n), "2") for n in range(5)] * 2
    columns = {"mean_return": "return", "mean_stages_cleared": "stages", "win_rate": "won"}
    for agent in agents:
        own = [row for row in rows if row["agent"] == agent["agent"]]
        for key, name in columns.items():
            mean = sum(float(row[name]) for row in own) / len(own)
            assert mean == pytest.approx(agent[key], rel=1e-5), (agent["agent"], key)
        assert sum(row["ending"] == "cut_off" for row in own) == agent["truncated"]


def test_a_file_that_cannot_be_written_is_told_before_any_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "games.csv").mkdir()
    place = tmp_path / "games.csv"
    assert main(["evaluate", "scripted", "--games", str(place)]) == 2
    error = capsys.readouterr().err
    assert error == f"hackmatrix evaluate: error: --games {place}: can't be written there\n"


def test_a_disk_that_is_full_leaves_the_rows_of_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "games.csv"
    file.write_text("older")
    monkeypatch.setattr("hackmatrix.research.evaluation.game_rows.write_atomically", full)
    assert main(["evaluate", "exit", "--episodes", "2", "--games", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"hackmatrix evaluate: error: --games {file}: ")
    assert file.read_text() == "older"


@pytest.mark.thorough
def test_files_of_other_environments_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", saved(tmp_path, features=4)]) == 2
    assert "reads 4 features; HackMatrix has 1545" in capsys.readouterr().err
    size = FEATURE_SIZE["full"]
    assert main(["evaluate", saved(tmp_path, features=size, actions=5)]) == 2
    wanted = "params.Dense_1.bias is [5], the network mlp for HackMatrix-v1 wants [28]\n"
    assert wanted in capsys.readouterr().err
    assert main(["evaluate", saved(tmp_path, features=size, environment="Pong-v0")]) == 2
    assert "no environment is called 'Pong-v0', there are HackMatrix, " in capsys.readouterr().err
    assert main(["evaluate", saved(tmp_path, features=6, environment="CartPole-v1")]) == 2
    wanted = "params.Dense_0.kernel is [6, 4], the network mlp for CartPole-v1 wants [4, 4]\n"
    assert wanted in capsys.readouterr().err


def test_programs_of_another_environment_are_not_forbidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path, 4, 2, environment="CartPole-v1")
    assert main(["evaluate", file, "--forbid", "PUSH"]) == 2
    assert capsys.readouterr().err.endswith(f"it names; {file} plays CartPole-v1\n")


def test_without_gymnax_classic_control_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gymnax", None)
    assert main(["evaluate", saved(tmp_path, 4, 2, environment="CartPole-v1")]) == 2
    assert capsys.readouterr().err == (
        "hackmatrix evaluate: error: needs gymnax: pip install 'hackmatrix[classic]'\n"
    )


def balancing(folder: Path, *, gain: float) -> None:
    """A policy for CartPole that pushes to where the pole falls, by its angle and speed."""
    lean = np.array([[0, 0], [0, 0], [1, -1], [1, -1]], np.float32)
    layers = {
        "Dense_0": {"kernel": lean, "bias": np.zeros(2, np.float32)},
        "Dense_1": {"kernel": gain * np.array([[-1, 1], [1, -1]]), "bias": np.zeros(2)},
        "Dense_2": {"kernel": np.zeros((2, 1)), "bias": np.zeros(1)},
    }
    params = {"params": jax.tree.map(np.float32, layers)}
    save_params(folder / "final_params.npz", params, {"environment": "CartPole-v1"})


@pytest.mark.thorough
def test_agents_of_one_run_are_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, gain in ((2, -20.0), (10, 20.0), (9, 0.0)):  # falls at once, balances, random
        (tmp_path / f"seed_{seed}").mkdir()
        balancing(tmp_path / f"seed_{seed}", gain=gain)
    argv = ["evaluate", str(tmp_path), "--episodes", "50"]
    assert main([*argv, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["agent"] == str(tmp_path)
    assert [agent["seed"] for agent in told["agents"]] == [10, 9, 2]
    best, random, worst = (agent["mean_return"] for agent in told["agents"])
    assert best > 100 > 30 > random > 15 > worst
    assert told["mean_return"] == pytest.approx((best + random + worst) / 3)
    low, high = told["mean_return_ci"]
    assert low < worst < best < high  # three agents that differ much say little of others

    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path}, seed 0, 50 games each"
    assert lines[1].split() == ["rank", "seed", "return", "length"]
    assert [line.split()[:2] for line in lines[2:5]] == [["1", "10"], ["2", "9"], ["3", "2"]]
    assert lines[5].startswith("all ")
    assert lines[6] == f"best  {tmp_path / 'seed_10' / 'final_params.npz'}"

    alone = ["evaluate", str(tmp_path / "seed_9"), "--episodes", "50", "--json"]
    assert main(alone) == 0
    assert json.loads(capsys.readouterr().out)["mean_return"] == random


def test_random_plays_any_environment(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", "random", "--env", "probe_environments:Value", "--episodes", "4", "--json"]
    assert main(argv) == 0
    assert json.loads(capsys.readouterr().out)["mean_return"] == 1


def test_agents_play_the_same_games(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    file = saved(tmp_path, features=FEATURE_SIZE["classic"])  # which its shape tells
    argv = ["evaluate", "scripted", file, *GAMES]
    assert main([*argv, "--json", "--report", str(page)]) == 0
    told = json.loads(capsys.readouterr().out)
    scripted, fresh = told["agents"]
    assert told["agent"] == ["scripted", file]
    assert scripted["mean_stages_cleared"] > fresh["mean_stages_cleared"] + 0.5
    difference = fresh["minus_first"]["mean_stages_cleared"]
    low, high = difference["ci"]
    assert low <= difference["mean"] <= high < 0
    for each in (scripted, fresh):
        assert each["stages"][0]["games"] == 30
        assert sum(row["deaths"] for row in each["deaths"]) + each["truncated"] == 30
        for kind, count in each["death_causes"].items():
            assert count == sum(row[kind] for row in each["deaths"])
    assert "deaths by kind" in page.read_text()


@pytest.mark.thorough
def test_what_a_program_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", "scripted", "--episodes", "30", "--forbid", "row, WAIT"]
    assert main([*argv, "--json"]) == 0
    agents = json.loads(capsys.readouterr().out)["agents"]
    assert [agent["agent"] for agent in agents] == [
        "scripted",
        "without ROW",
        "without WAIT",
        "without any of them",
    ]
    for agent in agents:
        for program in ("ROW", "WAIT"):
            forbidden = agent["agent"] in (f"without {program}", "without any of them")
            assert not (forbidden and agent["program_use"][program])
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "scripted, seed 0, 30 games each"
    assert lines[2].startswith("scripted ")
    assert lines[3].startswith("without ROW ")
    assert lines[4].startswith("  minus the first ")


@pytest.mark.slow
def test_random_and_exit_play_as_in_the_original(capsys: pytest.CaptureFixture[str]) -> None:
    # The recordings of the original: random 0.147 +- 0.041 stages (75 games), return -3.1; `exit`,
    # which there strays from the way at times, 1.52 +- 0.10 (82 games).
    told = {}
    for player in ("random", "exit"):
        assert main(["evaluate", player, "--json"]) == 0
        told[player] = json.loads(capsys.readouterr().out)
    assert 0.10 < told["random"]["mean_stages_cleared"] < 0.25
    assert -4.0 < told["random"]["mean_return"] < -2.5
    assert 1.4 < told["exit"]["mean_stages_cleared"] < 2.2
    assert told["random"]["truncated"] == told["exit"]["truncated"] == 0


def test_a_terminal_counts_the_games_of_a_player_that_takes_long() -> None:
    """And nothing of that is left: a pipe gets the report alone, see `test_core_install.py`."""
    line = f"{sys.executable} -m hackmatrix evaluate exit --episodes 3 --max-steps 5"
    done = subprocess.run(["script", "-qec", line, "/dev/null"], capture_output=True, check=True)
    counted, report = done.stdout.decode().split("\r\x1b[K")
    assert counted.startswith("\r1 of 3 games")
    assert report.startswith("exit, seed 0")
