"""The original's command lines run as they are written in its documents."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

# Folder they are typed in, and the line. Environment variables stand in front, as in a shell.
COMMANDS = (
    # On the TPU.
    (
        "python",
        "python3 scripts/train_purejaxrl.py --total-timesteps 100000000 --num-envs 2048 "
        "--num-steps 128 --checkpoint-dir checkpoints",
    ),
    # Quick start, and with common options.
    (".", "python python/scripts/train_purejaxrl.py"),
    ("python", "python scripts/train_purejaxrl.py"),
    (
        ".",
        "python python/scripts/train_purejaxrl.py --total-timesteps 1000000000 --num-envs 2048 "
        "--num-steps 128 --lr 6.25e-5 --ent-coef 0.15 --log-interval 5 "
        "--checkpoint-dir checkpoints",
    ),
    # The validation run.
    (
        ".",
        "python3 scripts/train_purejaxrl.py --total-timesteps 1000000000 --num-envs 2048 "
        "--num-steps 128 --lr 6.25e-5 --ent-coef 0.15 --log-interval 5 "
        "--checkpoint-dir checkpoints",
    ),
    # While the TPU is busy.
    (".", "JAX_PLATFORMS=cpu python python/scripts/train_purejaxrl.py --num-envs 64 --no-wandb"),
)
# Given the run `run-name` with the checkpoints 40 and 100.
RESUME = (
    "python python/scripts/train_purejaxrl.py --resume checkpoints/run-name/checkpoint_100.pkl",
    "python python/scripts/train_purejaxrl.py --resume checkpoints/run-name/checkpoint_100.pkl "
    "--rewind",
    "python python/scripts/train_purejaxrl.py --resume checkpoints/run-name/checkpoint_40.pkl "
    "--rewind",
)


def typed(folder: str, line: str, *further: str, work: Path) -> subprocess.CompletedProcess[str]:
    """The effects of the line in a clone, `python` being the interpreter of these tests.

    The scripts are named by their place in the repository, and run in a folder of their own.
    """
    words = shlex.split(line)
    variables = {}
    while "=" in words[0]:
        name, value = words.pop(0).split("=")
        variables[name] = value
    interpreter, script, *arguments = words
    assert interpreter in ("python", "python3")
    return subprocess.run(
        [sys.executable, str(ROOT / folder / script), *arguments, *further],
        cwd=work,
        env={**os.environ, "WANDB_MODE": "disabled", **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("folder", "line"), COMMANDS)
def test_lines_of_the_original_are_understood(folder: str, line: str, tmp_path: Path) -> None:
    result = typed(folder, line, "--print-config", work=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("model:\n")
    assert list(tmp_path.iterdir()) == []


def test_arguments_come_through_and_errors_go_out(tmp_path: Path) -> None:
    result = typed(".", "python python/scripts/train_purejaxrl.py --lrr 1", work=tmp_path)
    assert result.returncode == 2
    assert "unknown argument --lrr, did you mean --lr?" in result.stderr
    line = "python scripts/train_purejaxrl.py --seed 7 --print-config"
    assert "seed: 7\n" in typed("python", line, work=tmp_path).stdout


def saved_run(work: Path) -> Path:
    """The run `run-name`: of few games, as far as its checkpoint 100 and one of update 40."""
    line = "python scripts/train_purejaxrl.py --run-name run-name --no-wandb --num-envs 4"
    further = "--num-steps 2 --hidden-dim 8 --save-interval-timesteps 320 --total-timesteps 800"
    result = typed(".", f"{line} {further}", work=work)
    assert result.returncode == 0, result.stderr
    return work / "checkpoints" / "run-name"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("folder", "line"), COMMANDS)
def test_lines_of_the_original_train(folder: str, line: str, tmp_path: Path) -> None:
    # As written, but for the length: one update.
    result = typed(folder, line, "--total-timesteps", "1", work=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "done after 1 updates" in result.stdout
    (run,) = (tmp_path / "checkpoints").iterdir()
    assert (run / "final_params.npz").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_lines_of_the_original_resume(tmp_path: Path) -> None:
    run = saved_run(tmp_path)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["100", "40", "80"]
    for line, updates in zip(RESUME, (105, 105, 42), strict=True):
        steps = str(updates * 8)
        result = typed(".", line, "--total-timesteps", steps, work=tmp_path)
        assert result.returncode == 0, result.stderr
        assert f"done after {updates} updates" in result.stdout
        (run / "checkpoints" / str(updates)).exists()
        if updates == 105:
            # The next line means checkpoint 100 as the newest one.
            for path in (run / "checkpoints" / "105").rglob("*"):
                path.unlink() if path.is_file() else None
            subprocess.run(["rm", "-r", str(run / "checkpoints" / "105")], check=True)
