"""The commands with several tasks: train, resume, evaluate."""

import json
import shutil
from pathlib import Path

import pytest
from small_runs import assert_same_run

from hackmatrix.cli.main import main

TINY = [
    "--num-envs=4",
    "--num-steps=8",
    "--num-minibatches=2",
    "--hidden-dim=8",
    "--num-layers=1",
    "--log-interval=1",
    "--normalize-observations",
    "--no-wandb",
]
TASKS = ["--multi-task", "--task-list", "['CartPole-v1', 'MountainCar-v0']"]


@pytest.mark.slow
def test_a_run_is_resumed_bit_for_bit_and_evaluated_by_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train = ["train", *TINY, *TASKS, "--save-interval=2", "--total-timesteps=128"]
    assert main([*train, f"--output-dir={whole}"]) == 0
    shutil.copytree(whole, cut)
    assert main(["train", f"--resume={cut}/checkpoints/2", "--rewind"]) == 0
    assert_same_run(whole, cut, 4)

    capsys.readouterr()
    assert main(["evaluate", str(cut), "--episodes=5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 8 <= told["task/CartPole-v1/mean_return"] <= 500
    assert told["task/MountainCar-v0/mean_length"] == 200
    assert main(["checkpoint", "verify", str(cut)]) == 0

    capsys.readouterr()
    other = ["--task-list", "['CartPole-v1', 'Acrobot-v1']"]
    assert main(["train", f"--resume={cut}", *other]) == 2
    error = capsys.readouterr().err
    assert "was trained on CartPole-v1+MountainCar-v0, not on CartPole-v1+Acrobot-v1" in error
