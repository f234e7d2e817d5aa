"""The scripts of other documents: which command of ours each is, with which words."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import ROOT

from hackmatrix.cli.scripts import SCRIPTS, command_line

ORIGINAL = ["--config", "original"]


def test_each_has_its_file_where_the_documents_look_for_it() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "python/scripts").glob("*.py")}
    in_scripts = {name for name in SCRIPTS if "/" in name}
    assert files == {f"python/{name}" for name in in_scripts}
    for file in (*SCRIPTS, *files):
        assert f'run("{file.removeprefix("python/")}")' in (ROOT / file).read_text()


@pytest.mark.parametrize(
    ("name", "words", "line"),
    [
        ("train.py", "--seed 1", "train --seed 1"),
        ("scripts/train.py", "--no-wandb", "sb3 train --no-wandb"),
        ("scripts/prepare_data.py", "--env-name X --output-dir d", "data record d --env-name X"),
        ("scripts/verify_data.py", "--data-dir=d", "data verify d"),
        ("scripts/verify_checkpoint.py", "--checkpoint c", "checkpoint verify c"),
        ("scripts/convert_checkpoint.py", "--output o --input i", "checkpoint convert i o"),
        ("scripts/monitor_training.py", "--log-dir d", "monitor --log-dir d"),
        ("scripts/watch_jax_agent.py", "f.npz --episodes 5", "watch f.npz --episodes 5"),
    ],
)
def test_words_of_a_script(name: str, words: str, line: str) -> None:
    assert command_line(name, words.split()) == line.split()


def test_the_original_s_settings_hold_unless_others_are_named(tmp_path: Path) -> None:
    pickle, name = tmp_path / "checkpoint_40.pkl", "scripts/train_purejaxrl.py"
    pickle.touch()
    for begun in ([], ["--resume", "x.npz"], ["--resume", str(pickle)], ["--resume-if-there"]):
        assert command_line(name, begun) == ["train", *ORIGINAL, *begun]
    for kept in (
        ["--config=best"],
        ["--config", "best"],
        ["--resume", "runs/x/checkpoint_40.pkl"],
        ["--resume-from=runs/x"],
        ["--resume-run", "x"],
    ):
        assert command_line(name, kept) == ["train", *kept]
    search = command_line("scripts/optuna_search.py", ["--pruning"])
    assert search == ["tune", "--sampler", "tpe", *ORIGINAL, "--pruning"]


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    """Output of a line typed in the folder python of a new clone, which was never set up.

    Its interpreter has the dependencies alone.
    """
    clone = tmp_path / "clone"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for file in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True).stdout.split("\n"):
        if file.startswith(("hackmatrix/", "scripts/", "hatch_build")) and (ROOT / file).is_file():
            (clone / file).parent.mkdir(parents=True, exist_ok=True)
            (clone / file).write_bytes((ROOT / file).read_bytes())
    python = _without_the_package(tmp_path)
    work = clone / "python"
    work.mkdir()

    def run(line: str) -> str:
        environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", line], cwd=work, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.thorough
def test_a_clone_that_was_never_set_up_says_so(run: Callable[[str], str]) -> None:
    said = run("python ../scripts/train_purejaxrl.py --print-config --total-timesteps 1")
    assert "total_timesteps: 1\n" in said
    note = "the native engine is missing, so games run some ten times slower: `make setup` builds"
    assert note in run("python ../hackmatrix evaluate exit --episodes 1")
    assert note not in run("python ../hackmatrix evaluate exit --episodes 1 --json")


@pytest.mark.slow
def test_the_next_command_works_where_it_is_printed(run: Callable[[str], str]) -> None:
    flags = (
        "--num-envs 4 --num-steps 4 --num-minibatches 1 --total-timesteps 16 --hidden-dim 8 "
        "--no-wandb --env CartPole-v1"
    )
    trained = run(f"python ../scripts/train_purejaxrl.py {flags}")
    (following,) = [line for line in trained.splitlines() if line.startswith("next ")]
    command = following.removeprefix("next").strip()
    assert command.startswith("python ../hackmatrix evaluate checkpoints/")
    assert "return" in run(f"{command} --episodes 2 --max-steps 5")


def _without_the_package(folder: Path) -> Path:
    """An interpreter with all that this one has, but for this package."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    theirs = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(theirs) + "\n")
    return venv / "bin" / "python"
