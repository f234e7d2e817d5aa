"""The command `hackmatrix train`: flags, refusals, and a run to its end."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import probe_environments as probes
import pytest
import yaml

from hackmatrix import ENVIRONMENT_ID
from hackmatrix.cli.main import main
from hackmatrix.cli.train import main as train
from hackmatrix.core.processes import command_name
from hackmatrix.core.version import __version__
from hackmatrix.environments.registry import MAKERS
from hackmatrix.learning.settings.config import OPTIONS, TrainConfig, TrainOptions
from hackmatrix.learning.settings.config_file import dump_config
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.runs.checkpoints import Facts, save_checkpoint

pytestmark = pytest.mark.usefixtures("shared_programs")

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
    "--project": "hackmatrix",
    "--entity": None,
    "--save-interval-minutes": 10.0,
    "--save-interval": None,
    "--save-interval-timesteps": None,
    "--checkpoint-dir": Path("checkpoints"),
    "--seed": 0,
    "--observation": "full",
}
PLACE = ("--coordinator", "host:1", "--num-processes", "2", "--process-id")


BEFORE_JAX = """
import sys
from hackmatrix.cli.main import main
from hackmatrix.learning.reporting.console import Console

def say(self, text):
    assert 'jax' not in sys.modules
    print(text)
    sys.exit()

Console.say = say
for line in sys.stdin.read().splitlines():
    try:
        code = main(["train", *line.split()])
    except SystemExit as end:
        code = end.code or 0
    heavy = {'jax', 'numpy'} if "help" in line else {'jax'}
    assert not heavy & sys.modules.keys(), line
    print(f"exit code {code}")
"""
REFUSED = {
    "--resume mine/checkpoint_3.pkl": "mine has newer checkpoints than 3 (6): --resume mine",
    "--output-dir mine": "--output-dir mine is a run: choose another folder, or --resume mine",
    "--checkpoint-dir . --run-name mine": "the run mine exists: choose another --run-name",
    "--config my.yaml --curriculum curriculum --env CartPole-v1": (
        "--curriculum has levels of HackMatrix, and --env is CartPole-v1"
    ),
    "--config bad.yaml": (
        "--num-minibatches 5 must divide num_envs x num_steps = 8 x 128 = 1024; "
        "--num-minibatches is training.num_minibatches in bad.yaml"
    ),
}


def test_help_a_first_line_and_refusals_come_before_jax_is_loaded(tmp_path: Path) -> None:
    for update in (3, 6):
        save_checkpoint(_folder(tmp_path / "mine"), {"x": np.zeros(1)}, _facts(update))
    (tmp_path / "my.yaml").write_text("environment: {name: Acrobot-v1}\n")
    (tmp_path / "bad.yaml").write_text(
        "environment: {num_envs: 8}\ntraining: {num_minibatches: 5}\n"
    )
    lines = ["--help-all", *REFUSED, "--config original"]
    command = [sys.executable, "-c", BEFORE_JAX]
    given = "\n".join(lines)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, input=given)
    assert done.returncode == 0, done.stderr
    codes = re.findall(r"^exit code (\d)$", done.stdout, re.M)
    assert codes == ["0", *["2"] * len(REFUSED), "0"]
    told = done.stderr.splitlines()
    for line, message in zip(told, REFUSED.values(), strict=True):
        assert line.startswith("hackmatrix train: error: ")
        assert message in line
    shown = set(re.findall(r"--[a-z-]+", done.stdout))
    options = {field.name for field in dataclasses.fields(TrainOptions)}
    flags = {
        f"--{name.replace('_', '-')}" for name in {*OPTIONS, *options} - {"algorithm_settings"}
    }
    assert {*FLAGS, "--resume-from", "--no-wandb"} | flags <= shown
    assert "  hackmatrix train --config quick --seed 1\n" in done.stdout
    assert "306 updates, 10,027,008 steps" in done.stdout


def test_flags_have_the_defaults_of_the_original() -> None:
    settings = TrainConfig().flat()
    for flag, default in FLAGS.items():
        assert settings[flag.removeprefix("--").replace("-", "_")] == default


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--lrr", "1"], "unknown argument --lrr, did you mean --lr?"),
        (["--resume", "x"], "--resume x: there is no such file or folder"),
        (["--resume", ""], "--resume must name a run's folder"),
        (["--resume", "x.npz"], "--resume x.npz: there is no such file"),
        (["--resume-run", ".."], "--resume-run must be 1 to 100 letters"),
        (["--config", "bets"], "bets: no file, and no settings of this name; did you mean best?"),
        (["--resume-if-there"], "--resume-if-there needs --run-name or --output-dir"),
        (
            ["--resume-if-there", "--resume", "x"],
            "--resume-if-there names no run: give it without --resume",
        ),
        (["--checkpoint-dir", "gs://b/x"], "gs://b/x: must have the form gs://BUCKET/FOLDER"),
        (["--output-dir", "gs://my-bucket/../x"], "gs://my-bucket/../x: must have"),
        (["--process-id", "1"], "--coordinator is missing: --coordinator, --num-processes and"),
        ([*PLACE[:4], "--distributed"], "--process-id is missing"),
        ([*PLACE, "2", "--distributed"], "--process-id 2 must be below --num-processes 2"),
        ([*PLACE, "1"], "--coordinator needs --distributed"),
        (["--coordinator", "host", *PLACE[2:], "1"], "--coordinator must be HOST:PORT, got host"),
        (["--distributed", "--auto-tune"], "--auto-tune looks for devices before"),
        (["--distributed", "--heartbeat-timeout", "1"], "argument --heartbeat-timeout: must be at"),
        (["--total-timesteps", "1" * 400], "argument --total-timesteps: must be at least 1 and at"),
        (["--config", "x.yaml"], "--config x.yaml: No such file or directory"),
        (["--print-config", "--config", "."], "--config .: Is a directory"),
        (["--env", "HackMatri"], "no environment is called 'HackMatri', did you mean HackMatrix?"),
        (["--device", "tpu"], "--device tpu: JAX finds none here, only cpu"),
        (["--num", "3"], "unknown argument --num, "),
        (["--num-envs", "many"], "argument --num-envs: must be a number, got 'many'"),
        (["--num-envs"], "argument --num-envs: expected one argument"),
        (["--task-list", "['CartPole-v1']"], "argument --task-list: must name at least two env"),
        (["--task-list", "CartPole-v1"], "argument --task-list: must be a list of environments"),
        (["--lr", "-1"], "argument --lr: must be above 0, got -1.0"),
        (
            ["--observation", "rgb"],
            "argument --observation: must be one of classic, full, tactical, got 'rgb'",
        ),
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

    monkeypatch.setitem(MAKERS, ENVIRONMENT_ID, lambda: make)
    monkeypatch.chdir(tmp_path)
    return tmp_path


TINY = ["--num-envs=8", "--num-steps=8", "--hidden-dim=8", "--log-interval=2", "--no-wandb"]


def _folder(run: Path) -> Path:
    run.mkdir(exist_ok=True)
    (run / "config.yaml").write_text(dump_config(TrainConfig()))
    return run


def _facts(update: int) -> Facts:
    config = TrainConfig().as_dict()
    return Facts(update, update * 32_768, 0, ENVIRONMENT_ID, __version__, config)


def test_a_run_tells_what_it_does_and_its_settings_are_kept(
    grid: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hackmatrix.learning.settings.resolve.REFERENCE_BATCH", 32)
    argv = [*TINY, "--config", "original", "--total-timesteps", "2e2", "--lr", "0.001"]
    assert train([*argv, "--run-suffix", "tiny"]) == 0
    (run,) = (grid / "checkpoints").iterdir()
    assert re.fullmatch(r"hackmatrix-jax-[a-z]{3}\d\d-\d\d-1-tiny", run.name)
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "scaled for the batch of 64: num_minibatches 4 -> 8\n" in out
    assert "scaled for the batch of 64: update_epochs 4 -> 2\n" in out
    assert "lr" not in out.split("updates")[0]
    assert "4 updates, 256 steps (rounded up to whole updates); loading JAX ..." in lines
    run = Path("checkpoints") / run.name
    assert lines[-5:] == [
        "done after 4 updates, 256 steps",
        f"run         {run}",
        f"checkpoint  {run / 'checkpoints' / '4'}",
        f"params      {run / 'final_params.npz'}",
        f"next        {command_name()} evaluate {run / 'final_params.npz'}",
    ]
    saved = (run / "config.yaml").read_text()
    assert "num_minibatches: 8\n" in saved
    assert "lr: 0.001\n" in saved

    resumed = printed(capsys, "--resume", str(run))
    assert (resumed["lr"], resumed["num_minibatches"]) == (0.001, 8)
    assert train([*argv, "--print-config"]) == 0
    Path("printed.yaml").write_text(capsys.readouterr().out)
    assert train(["--config", "printed.yaml", "--run-name", "printed"]) == 0
    again = Path("checkpoints/printed")
    assert (again / "config.yaml").read_text() == saved
    assert (again / "final_params.npz").read_bytes() == (run / "final_params.npz").read_bytes()


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert train([*argv, "--print-config"]) == 0
    sections: dict[str, dict[str, Any]] = yaml.safe_load(capsys.readouterr().out)
    return {name: value for section in sections.values() for name, value in section.items()}


def test_the_best_settings_are_taken_where_none_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    best = printed(capsys)
    assert best == printed(capsys, "--config", "best")
    assert (best["observation"], best["lr"]) == ("tactical", 1e-3)
    assert printed(capsys, "--lr", "0.1") == best | {"lr": 0.1}
    original = printed(capsys, "--config", "original")
    assert (original["observation"], original["normalize_rewards"]) == ("classic", False)
    assert printed(capsys, "--env", "CartPole-v1")["lr"] == 2.5e-4


def test_settings_for_the_device_are_chosen_where_none_are_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = printed(capsys, "--auto-tune", "--num-envs", "64")
    assert (chosen["num_envs"], chosen["num_steps"]) == (64, 128)


@pytest.mark.thorough
@pytest.mark.usefixtures("grid")
def test_a_run_that_is_stopped_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trainer.run

    def interrupted(self: Trainer, state: TrainState, count: int) -> TrainState:
        if count and int(state.update) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return run(self, state, count)

    argv = [*TINY, "--total-timesteps", "256", "--run-name", "x"]
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "run", interrupted)
        assert train([*argv, "--eval-interval", "4", "--eval-episodes", "10"]) == 128 + 15
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "settings of --config best; --list-configs names others"
    assert lines[-6] == "stopped after 2 updates, 128 steps"
    assert lines[-1] == f"            {command_name()} train --resume checkpoints/x"
    assert train(["--resume", "checkpoints/x"]) == 0
    out = capsys.readouterr().out
    assert "done after 4 updates, 256 steps" in out
    assert "best        checkpoints/x/checkpoints/4\n" in out
