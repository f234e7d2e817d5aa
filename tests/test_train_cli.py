"""The command `hackmatrix train`: flags, refusals, and a run to its end."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import probe_environments as probes
import pytest

import hackmatrix
from hackmatrix.cli.main import main
from hackmatrix.cli.train import main as train
from hackmatrix.training.config import TrainConfig

FLAGS = {
    "--num-envs": 256,
    "--num-steps": 128,
    "--total-timesteps": 10_000_000,
    "--lr": 2.5e-4,
    "--gamma": 0.99,
    "--gae-lambda": 0.95,
    "--num-minibatches": 4,
    "--update-epochs": 4,
    "--clip-eps": 0.2,
    "--vf-coef": 0.5,
    "--ent-coef": 0.15,
    "--max-grad-norm": 0.5,
    "--hidden-dim": 256,
    "--num-layers": 2,
    "--log-interval": 10,
    "--checkpoint-dir": Path("checkpoints"),
    "--seed": 0,
    "--observation": "full",
}


def test_flags_have_the_defaults_of_the_original() -> None:
    config = TrainConfig()
    for flag, default in FLAGS.items():
        assert getattr(config, flag.removeprefix("--").replace("-", "_")) == default


def test_help_shows_every_flag_and_an_example_without_importing_jax() -> None:
    code = (
        "import sys\n"
        "from hackmatrix.cli.train import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "assert 'jax' not in sys.modules and 'numpy' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert all(flag in result.stdout for flag in FLAGS)
    assert "  hackmatrix train --num-envs 2048" in result.stdout


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--lrr", "1"], "unknown argument --lrr, did you mean --lr?"),
        (["--resume", "x"], "unknown argument --resume, "),
        (["--auto-tune"], "unknown argument --auto-tune, "),
        (["--project=x"], "unknown argument --project=x, "),
        (["surplus"], "unknown argument surplus, "),
        (["--num", "3"], "unknown argument --num, "),
        (["--num-envs", "many"], "argument --num-envs: must be a number, got 'many'"),
        (["--num-envs", "1.5"], "argument --num-envs: must be a whole number, got '1.5'"),
        (["--num-envs", "1e400"], "argument --num-envs: must be a whole number, got '1e400'"),
        (["--num-envs"], "argument --num-envs: expected one argument"),
        (["--lr", "-1"], "--lr must be above 0, got -1.0"),
        (["--observation", "rgb"], "argument --observation: invalid choice: 'rgb'"),
        (["--num-envs", "10", "--num-steps", "3"], "--num-minibatches 4 must divide"),
        (["--run-name", "../x"], "--run-name must be 1 to 100 letters"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    argv: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *argv]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"hackmatrix train: error: {message}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trains on the tiny grid instead of the game, in an empty folder."""

    def make(**_: Any) -> probes.Grid:
        return probes.Grid()

    monkeypatch.setattr(hackmatrix, "make", make)
    monkeypatch.chdir(tmp_path)
    return tmp_path


TINY = ["--num-envs", "8", "--num-steps", "8", "--hidden-dim", "8", "--log-interval", "2"]


def test_a_run_tells_what_it_does(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train([*TINY, "--total-timesteps", "2e2", "--run-suffix", "tiny"]) == 0
    (run,) = (grid / "checkpoints").iterdir()
    assert re.fullmatch(r"hackmatrix-jax-[a-z]{3}\d\d-\d\d-1-tiny", run.name)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "4 updates, 256 steps (rounded up to whole updates); loading JAX ..."
    params = Path("checkpoints") / run.name / "final_params.npz"
    assert lines[-3:] == [
        "done after 4 updates",
        f"params    {params}",
        f"next      hackmatrix evaluate {params}",
    ]
    assert params.exists()


def test_scaling_is_told_and_saved(
    grid: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hackmatrix.training.scaling.REFERENCE_BATCH", 32)
    argv = [*TINY, "--total-timesteps", "64", "--run-name", "x", "--lr", "0.001"]
    assert train(argv) == 0
    out = capsys.readouterr().out
    assert "scaled for the batch of 64: num_minibatches 4 -> 8\n" in out
    assert "scaled for the batch of 64: update_epochs 4 -> 2\n" in out
    assert "lr" not in out.split("updates")[0]
    saved = (grid / "checkpoints" / "x" / "config.yaml").read_text()
    assert "num_minibatches: 8\n" in saved
    assert "lr: 0.001\n" in saved


def test_the_first_line_comes_at_once() -> None:
    code = (
        "import sys, hackmatrix.cli.train as t\n"
        "def say(text):\n"
        "    assert 'jax' not in sys.modules\n"
        "    print(text); sys.exit()\n"
        "t._say = say\n"
        "t.main([])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.startswith("306 updates, 10,027,008 steps"), result.stderr
