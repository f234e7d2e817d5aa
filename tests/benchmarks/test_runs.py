"""The benchmarks that train: classic control, algorithms, searches."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from paths import CONFIGS

from benchmarks import classic, learners, tuning
from hackmatrix.agents.networks.algorithms import ALGORITHMS

SETTINGS = {
    "model": {"hidden_dim": 8, "num_layers": 1},
    "training": {"num_steps": 16, "total_timesteps": 640},
}


def config_of(folder: Path, file: str, env: str) -> Path:
    """A file of settings with which training takes no time."""
    path = folder / f"{file}.yaml"
    path.write_text(yaml.dump(SETTINGS | {"environment": {"name": env, "num_envs": 8}}))
    return path


def figures_of(
    capsys: pytest.CaptureFixture[str], main: Callable[[list[str]], int], *argv: str
) -> dict[str, Any]:
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_learning_curves_of_classic_control(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.classic._CONFIGS", ("cartpole_best",))
    config_of(tmp_path, "cartpole_best", "CartPole-v1")
    argv = ["--num-seeds", "2", "--episodes", "2", "--configs", str(tmp_path)]
    assert classic.main([*argv, "--output", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    figures = json.loads((tmp_path / "out" / "classic.json").read_text())
    (curve,) = figures["curves"].values()
    assert curve["timesteps"] == [128, 256, 384, 512, 640]
    for mean, low, high, agents in zip(
        *(curve[key] for key in ("mean", "low", "high", "agents")), strict=True
    ):
        assert mean == pytest.approx(sum(agents) / 2)
        assert low <= mean <= high
    assert len(curve["evaluated"]) == 2
    assert [each["who"] for each in figures["published"]["CartPole-v1"]] == ["CleanRL", "SB3 Zoo"]
    assert any(line.startswith("CartPole-v1") and "CleanRL 492.4" in line for line in lines)
    picture = (tmp_path / "out" / "classic.svg").read_text()
    assert all(text in picture for text in ("CartPole-v1", "CleanRL 492.4", "SB3 Zoo 500"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_scores_of_every_algorithm(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    argv = ["--num-seeds", "2", "--hackmatrix-seeds", "2", "--episodes", "2"]
    argv += ["--output", str(tmp_path)]
    assert learners.main([*argv, "--cartpole-steps", "1", "--hackmatrix-steps", "1"]) == 0
    out = capsys.readouterr().out
    figures = json.loads((tmp_path / "learners.json").read_text())
    rows = {(row["algorithm"], row["environment"]): row for row in figures["scores"]}
    assert set(rows) == {(a, e) for a in ALGORITHMS for e in ("CartPole-v1", "HackMatrix")}
    for (algorithm, _), row in rows.items():
        assert len(row["each"]) == 2
        assert np.mean(row["each"]) == pytest.approx(row["interval"][0])
        assert f"{row['steps']:,} | `{algorithm}` | 2 |" in out


def test_every_curve_has_a_configuration_and_published_results() -> None:
    for file in classic._CONFIGS:
        config = yaml.safe_load((CONFIGS / f"{file}.yaml").read_text())
        assert config["environment"]["name"] in classic.PUBLISHED


@pytest.mark.slow
def test_a_search_is_timed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    small = ["--num-trials", "2", "--num-seeds", "1", "--total-timesteps", "2048", "--jobs", "1"]
    figures = figures_of(capsys, tuning.main, *small, "--output", str(tmp_path))
    took = figures["took"].pop("hackmatrix tune")
    assert 0 < took["cpu_seconds"] <= took["seconds"] * figures["cores"] + 1
    assert not figures["took"]  # rejax only where it is named
    assert json.loads((tmp_path / "tuning.json").read_text())["num_trials"] == 2
