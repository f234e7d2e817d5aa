"""A run from its first line to its files, on a tiny environment."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import probe_environments as probes
import pytest
import yaml

from hackmatrix.agents.policy import load_policy
from hackmatrix.errors import UserError
from hackmatrix.training import loop
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.loop import train
from hackmatrix.training.trainer import Trainer, TrainState


def config_in(folder: Path, **changes: Any) -> TrainConfig:
    settings = {
        "num_envs": 8,
        "num_steps": 8,
        "total_timesteps": 7 * 64,
        "hidden_dim": 8,
        "num_layers": 1,
        "log_interval": 3,
        "checkpoint_dir": folder,
        "run_name": "mine",
    }
    return TrainConfig(**(settings | changes))


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_a_folder_that_explains_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = train(config_in(tmp_path), probes.Grid())
    run = tmp_path / "mine"
    assert outcome == (run / "final_params.npz", 7, True)
    assert sorted(path.name for path in run.iterdir()) == [
        "config.yaml",
        "final_params.json",
        "final_params.npz",
        "metrics.jsonl",
        "params_7.json",
        "params_7.npz",
    ]
    assert yaml.safe_load((run / "config.yaml").read_text())["num_envs"] == 8

    rows = rows_of(run)
    assert [row["update"] for row in rows] == [3, 6, 7]
    assert [row["timesteps"] for row in rows] == [192, 384, 448]
    for row in rows:
        assert row["train/steps_per_second"] > 0
        assert row["train/learning_rate"] == 2.5e-4
        assert "stats/mean_stage" not in row

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run ")
    assert lines[1].startswith("compiling")
    assert [line.split()[1] for line in lines[3:]] == ["3/7", "6/7", "7/7"]

    policy = load_policy(run)
    assert policy.about["update"] == 7
    assert policy.about["config"]["lr"] == 2.5e-4
    trainer = Trainer(probes.Grid(), config_in(tmp_path))
    expected = trainer.run(trainer.init(0), 7).params
    jax.tree.map(np.testing.assert_array_equal, policy.params, jax.device_get(expected))


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_the_length_of_calls_changes_neither_metrics_nor_params(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(config_in(tmp_path / "plain"), probes.Grid())
    monkeypatch.setattr(loop, "_updates_per_call", lambda _: ahead)
    train(config_in(tmp_path / "changed"), probes.Grid())
    runs = [tmp_path / name / "mine" for name in ("plain", "changed")]
    one, other = (load_policy(run).params for run in runs)
    jax.tree.map(np.testing.assert_array_equal, one, other)
    for row, changed in zip(*map(rows_of, runs), strict=True):
        del row["train/steps_per_second"], changed["train/steps_per_second"]
        assert row == changed


def test_a_signal_ends_the_run_between_updates_and_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Trainer.run

    def interrupted(self: Trainer, state: TrainState, count: int) -> TrainState:
        if count and int(state.update) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return run(self, state, count)

    monkeypatch.setattr(Trainer, "run", interrupted)
    outcome = train(config_in(tmp_path), probes.Grid())
    assert outcome == (tmp_path / "mine" / "params_5.npz", 5, False)
    assert load_policy(tmp_path / "mine").about["update"] == 5
    assert rows_of(tmp_path / "mine")[-1]["update"] == 5
    assert "stopping after this update" in capsys.readouterr().out


def test_an_existing_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="exists: choose another --run-name"):
        train(config_in(tmp_path), probes.Grid())
    assert list((tmp_path / "mine").iterdir()) == []
