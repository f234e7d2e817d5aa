"""Checkpoints that a stranger wrote: whole files, with games that are none."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hackmatrix.game import native
from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint, save_checkpoint

TINY = "--num-envs 8 --num-steps 8 --total-timesteps 64 --hidden-dim 8 --num-layers 1 --no-wandb"

pytestmark = pytest.mark.skipif(not native.available, reason="the native engine was left out")


def train(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hackmatrix", "train", "--checkpoint-dir", "runs", *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stranger")
    done = train(made, *TINY.split(), "--run-name", "mine")
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("saved.rows", 2**32 - 1),
        *(
            pytest.param(name, word, marks=pytest.mark.slow)
            for name, word in (
                ("enemies.count", 250),
                ("transmissions.count", 250),
                ("saved.count", 9),
                ("cells.blocks.high", 2**32 - 1),
            )
        ),
    ],
)
def test_games_that_are_none_are_refused(folder: Path, name: str, word: int) -> None:
    run = folder / "runs" / "strange"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(folder / "runs" / "mine", run)
    checkpoint = checkpoints_of(run)[-1].path
    arrays, facts = load_checkpoint(checkpoint)
    where = f"games.env_state.game.{name}"
    arrays[where] = np.full_like(arrays[where], word)
    if name == "saved.rows":
        arrays["games.env_state.game.saved.count"][:] = 4
    shutil.rmtree(checkpoint)
    save_checkpoint(run, arrays, facts)
    done = train(folder, "--resume", "runs/strange", "--total-timesteps", "128")
    assert done.returncode == 2, done.stderr
    where = f"runs/strange/checkpoints/{facts.update}"
    assert f"error: {where} is damaged: not a legal state of HackMatrix (" in done.stderr
    assert "Traceback" not in done.stderr
    assert checkpoints_of(run)[-1].update == facts.update
