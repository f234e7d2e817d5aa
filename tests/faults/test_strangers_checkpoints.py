"""Checkpoints that a stranger wrote: whole files, with games that are none."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from hackmatrix.cli.main import main
from hackmatrix.game import native
from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint, save_checkpoint

TINY = "--num-envs 2 --num-steps 2 --num-minibatches 1 --update-epochs 1 --hidden-dim 8"
TINY += " --num-layers 1 --architecture mlp --no-wandb --no-tensorboard --total-timesteps"

pytestmark = [
    pytest.mark.skipif(not native.available, reason="the native engine was left out"),
    pytest.mark.thorough,
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stranger") / "mine"
    assert main(["train", *TINY.split(), "4", f"--output-dir={folder}"]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("saved.rows", 2**32 - 1),
        ("enemies.count", 250),
        ("transmissions.count", 250),
        ("saved.count", 9),
        ("cells.blocks.high", 2**32 - 1),
    ],
)
def test_games_that_are_none_are_refused(
    name: str, word: int, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = Path(shutil.copytree(run, tmp_path / "strange"))
    checkpoint = checkpoints_of(strange)[-1].path
    arrays, facts = load_checkpoint(checkpoint)
    where = f"games.env_state.game.{name}"
    arrays[where] = np.full_like(arrays[where], word)
    if name == "saved.rows":
        arrays["games.env_state.game.saved.count"][:] = 4
    shutil.rmtree(checkpoint)
    save_checkpoint(strange, arrays, facts)
    assert main(["train", "--resume", str(strange), "--total-timesteps", "8"]) == 2
    told = f"error: {checkpoint} is damaged: not a legal state of HackMatrix ("
    assert told in capsys.readouterr().err
    assert checkpoints_of(strange)[-1].update == facts.update
