"""DQN, an algorithm outside the package: it learns, resumes exactly, and shares its games."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import DQN

from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint
from hackmatrix.runs.metrics_file import read_metrics

SMALL = "--num-envs=8 --num-steps=8 --hidden-dim=8 --log-interval=10 --no-wandb --no-tensorboard"
REPLAY = (
    "--algorithm-settings={replay_size: 512, learning_starts: 64, batch_size_of_replay: 32}",
    "--exploration-fraction=1e-6",  # of a longer run epsilon would fall later
)


@pytest.fixture(autouse=True)
def _in_a_folder_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(DQN, tmp_path)
    monkeypatch.chdir(tmp_path)


def hackmatrix(*flags: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "hackmatrix", *flags]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=500)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout + run.stderr


def train(name: str, *flags: str, steps: int, env: str = "CartPole-v1") -> Path:
    run = Path("checkpoints", name)
    begin = (f"--env={env}", *SMALL.split(), f"--run-name={name}", "--save-interval=5")
    which = (f"--resume={run}",) if run.exists() else begin
    hackmatrix("train", "--algorithm=dqn:DQN", f"--total-timesteps={steps}", *which, *flags)
    return run


def arrays(run: Path) -> dict[str, np.ndarray]:
    return load_checkpoint(checkpoints_of(run)[-1].path)[0]


@pytest.mark.thorough
def test_a_run_resumes_exactly_with_its_replay_and_its_agent_needs_no_code() -> None:
    whole = arrays(train("whole", *REPLAY, steps=640))
    train("half", *REPLAY, steps=320)
    half = arrays(train("half", steps=640))
    assert {name.split(".")[0] for name in whole} >= {"params", "target", "replay", "opt_state"}
    for name in whole:
        np.testing.assert_array_equal(whole[name], half[name], err_msg=name)
    assert whole["replay.action"].shape == (8, 64)
    refused = hackmatrix("train", "--resume=checkpoints/half", "--total-timesteps=960", code=2)
    assert "code that runs only if you say so by --algorithm dqn:DQN" in refused
    assert "games           2\n" in hackmatrix("evaluate", "checkpoints/half", "--episodes=2")


@pytest.mark.thorough
def test_two_devices_share_the_games_and_their_replay() -> None:
    both = train("both", *REPLAY, "--num-devices=2", steps=640, env="HackMatrix")
    assert arrays(both)["replay.action"].shape == (8, 64)
    losses = [row["train/td_loss"] for row in read_metrics(both) if "train/td_loss" in row]
    assert losses
    assert np.isfinite(losses).all()


@pytest.mark.slow
def test_it_solves_cartpole() -> None:
    settings = ("--hidden-dim=64", "--log-interval=100")
    rows = read_metrics(train("solved", *settings, steps=200_000))
    returns = [row["train/mean_episode_return"] for row in rows if "train/td_loss" in row]
    assert returns[-1] > 475
