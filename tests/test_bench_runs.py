"""The benchmarks that train: many seeds, trackers, classic control."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hackmatrix.cli.main import main

SETTINGS = {
    "model": {"hidden_dim": 8, "num_layers": 1},
    "training": {"num_steps": 16, "total_timesteps": 640},
}


def config_of(folder: Path, file: str, env: str) -> Path:
    """A file of settings with which training takes no time."""
    path = folder / f"{file}.yaml"
    path.write_text(yaml.dump(SETTINGS | {"environment": {"name": env, "num_envs": 8}}))
    return path


def figures_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["bench", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_many_seeds_are_timed_both_ways(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = str(config_of(tmp_path, "own", "CartPole-v1"))
    argv = ["seeds", "--config", config, "--num-seeds", "2", "--repeats", "2"]
    figures = figures_of(capsys, *argv)
    names = ["1 agent", "2 agents, one by one", "2 agents, side by side"]
    assert list(figures["steps_per_second"]) == names
    assert figures["batch"] == "8 games x 16 steps"
    for name in names:
        assert 0 < figures["min"][name] <= figures["steps_per_second"][name] <= figures["max"][name]
    assert main(["bench", *argv]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == names


def test_what_trackers_cost(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)  # no W&B: it takes seconds
    monkeypatch.setattr("hackmatrix.bench.trackers._IDLE_SECONDS", 0.1)
    config = str(config_of(tmp_path, "own", "CartPole-v1"))
    argv = ["trackers", "--config", config, "--timesteps", "2560", "--rows", "500"]
    figures = figures_of(capsys, *argv, "--repeats", "2")
    assert (figures["timesteps"], figures["rows"]) == (2560, 2)
    (board,) = figures["trackers"].values()
    assert 0 < board["told"] < 0.01
    assert 0 < board["row"] < 0.1
    a_second = board["row"] * figures["rows"] / figures["seconds"] + board["idle"]
    assert board["share"] == pytest.approx(a_second / figures["cores"])
    assert main(["bench", *argv]) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("TensorBoard ")


def test_learning_curves_of_classic_control(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = {
        "cartpole_best": "CartPole-v1",
        "acrobot": "Acrobot-v1",
        "mountain_car": "MountainCar-v0",
    }
    for file, env in names.items():
        config_of(tmp_path, file, env)
    argv = ["classic", "--num-seeds", "2", "--episodes", "2", "--configs", str(tmp_path)]
    assert main(["bench", *argv, "--output", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    figures = json.loads((tmp_path / "out" / "classic.json").read_text())
    assert list(figures["curves"]) == list(names.values())
    for name, curve in figures["curves"].items():
        assert len(curve["timesteps"]) == len(curve["mean"]) == len(curve["agents"]) > 0 or (
            name != "CartPole-v1"  # whose games are the only ones that end so early
        )
        assert len(curve["evaluated"]) == 2
        assert len(figures["published"][name]) == 2
    cartpole = figures["curves"]["CartPole-v1"]
    for mean, low, high, agents in zip(
        *(cartpole[key] for key in ("mean", "low", "high", "agents")), strict=True
    ):
        assert mean == pytest.approx(sum(agents) / 2)
        assert low <= mean <= high
    assert any(line.startswith("CartPole-v1") and "CleanRL 492.4" in line for line in lines)
    picture = (tmp_path / "out" / "classic.svg").read_text()
    assert all(text in picture for text in ("CartPole-v1", "Acrobot-v1", "SB3 Zoo -110.423"))
