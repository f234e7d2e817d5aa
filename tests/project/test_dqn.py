"""DQN, an algorithm outside the package: it learns, resumes exactly, and shares its games."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import DQN

from hackmatrix.cli.main import main
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
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dqn", raising=False)


def flags_of(name: str, *flags: str, steps: int) -> list[str]:
    begin = ("--env=CartPole-v1", *SMALL.split(), f"--run-name={name}", "--save-interval=5")
    return ["train", "--algorithm=dqn:DQN", f"--total-timesteps={steps}", *begin, *flags]


def train(name: str, *flags: str, steps: int) -> Path:
    assert main(flags_of(name, *flags, steps=steps)) == 0
    return Path("checkpoints", name)


def arrays(run: Path) -> dict[str, np.ndarray]:
    return load_checkpoint(checkpoints_of(run)[-1].path)[0]


@pytest.mark.thorough
def test_a_run_resumes_exactly_with_its_replay_and_its_agent_needs_no_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = arrays(train("whole", *REPLAY, steps=640))
    middle = ("--resume=checkpoints/whole/checkpoints/5", "--run-name=half")
    assert main(["train", "--algorithm=dqn:DQN", *middle]) == 0
    half = arrays(Path("checkpoints", "half"))
    assert {name.split(".")[0] for name in whole} >= {"params", "target", "replay", "opt_state"}
    for name in whole:
        np.testing.assert_array_equal(whole[name], half[name], err_msg=name)
    assert whole["replay.action"].shape == (8, 64)
    assert "for --algorithm dqn:DQN: lr 0.001" in capsys.readouterr().out

    # A process in which nobody has named the code, and a folder without it.
    monkeypatch.setattr("hackmatrix.core.named_code._allowed", set())
    assert main(["train", "--resume=checkpoints/half", "--total-timesteps=960"]) == 2
    assert "code that runs only if you say so by --algorithm dqn:DQN" in capsys.readouterr().err
    Path("dqn.py").unlink()
    monkeypatch.delitem(sys.modules, "dqn")
    assert main(["evaluate", "checkpoints/half", "--episodes=2"]) == 0
    assert "games           2\n" in capsys.readouterr().out


@pytest.mark.slow
def test_two_devices_share_the_games_and_their_replay() -> None:
    flags = flags_of("both", *REPLAY, "--num-devices=2", steps=320)
    run = subprocess.run(
        [sys.executable, "-m", "hackmatrix", *flags], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    both = Path("checkpoints", "both")
    assert arrays(both)["replay.action"].shape == (8, 64)
    (*_, row) = read_metrics(both)
    assert np.isfinite([row["train/td_loss"], row["train/mean_q"]]).all()


@pytest.mark.slow
def test_it_solves_cartpole() -> None:
    settings = ("--hidden-dim=64", "--log-interval=100")
    rows = read_metrics(train("solved", *settings, steps=200_000))
    returns = [row["train/mean_episode_return"] for row in rows if "train/td_loss" in row]
    assert returns[-1] > 475
