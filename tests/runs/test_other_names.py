"""What the names of checkpoints in other trainers' documents mean."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.runs.other_names import checkpoint_of_name, params_of_name
from hackmatrix.runs.params import save_params


def make_run(run: Path, *updates: int, final: bool = True) -> Path:
    run.mkdir(parents=True)
    (run / "config.yaml").touch()
    params = {"params": {"Dense_0": {"kernel": np.zeros((2, 2), np.float32)}}}
    for update in updates:
        (run / "checkpoints" / str(update)).mkdir(parents=True)
        (run / "checkpoints" / str(update) / "facts.json").write_text(json.dumps({}))
        save_params(run / f"params_{update}.npz", params, {})
    if final:
        save_params(run / "final_params.npz", params, {})
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "runs" / "mine", 20, 40)


@pytest.mark.parametrize(
    ("name", "update"),
    [
        ("checkpoint_20.pkl", 20),
        ("checkpoint_40.pickle", 40),
        ("checkpoint.pkl", 40),
        ("checkpoints/checkpoint_20.pt", 20),
    ],
)
def test_names_of_a_checkpoint(name: str, update: int, run: Path) -> None:
    checkpoint = checkpoint_of_name(run / name)
    assert checkpoint is not None
    assert (checkpoint.path, checkpoint.update) == (run / "checkpoints" / str(update), update)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("checkpoint_20.pkl", "params_20.npz"),
        ("checkpoint.pkl", "final_params.npz"),
        ("checkpoints/40", "params_40.npz"),
        ("../params_20.npz", "params_20.npz"),
        ("../checkpoint.pkl", "final_params.npz"),
        ("../final_params.npz", "final_params.npz"),
    ],
)
def test_names_of_params(name: str, params: str, run: Path) -> None:
    path = Path(os.path.normpath(run / name))
    assert params_of_name(path) == run / params


def test_in_a_folder_of_runs_the_newest_run_is_meant(run: Path) -> None:
    newer = make_run(run.parent / "newer", 20)
    os.utime(run / "final_params.npz", (1, 1))
    assert params_of_name(run.parent / "checkpoint.pkl") == newer / "final_params.npz"


def test_a_file_that_is_there_and_other_names_are_meant_themselves(run: Path) -> None:
    there = (run / "checkpoint_20.pkl", run.parent / "checkpoint.pkl", run / "other.npz")
    for path in there:
        path.touch()
    for path in (*there, run, run / "mine.npz", run.parent / "nowhere" / "final_params.npz"):
        assert params_of_name(path) == path
    assert checkpoint_of_name(run / "final_params.npz") is None


def test_what_a_run_does_not_have_is_said(tmp_path: Path, run: Path) -> None:
    with pytest.raises(UserError, match=r"mine has no checkpoint 30; there are 20, 40$"):
        checkpoint_of_name(run / "checkpoint_30.pkl")
    with pytest.raises(UserError, match=r"mine has no params of update 30; there are 20, 40$"):
        params_of_name(run / "checkpoint_30.pkl")
    missing = "no such file, and .*empty holds no run with params"
    there = f"{missing}; {run.parent} does: {run}/checkpoint_30.pkl$"
    with pytest.raises(UserError, match=there):
        params_of_name(run.parent / "empty" / "checkpoint_30.pkl")
    with pytest.raises(UserError, match=f"{missing}: `hackmatrix train` makes one$"):
        params_of_name(tmp_path / "nowhere" / "empty" / "checkpoint_30.pkl")
    early = make_run(tmp_path / "early", final=False)
    with pytest.raises(UserError, match=r"early has no params$"):
        params_of_name(early / "checkpoint.pkl")
    with pytest.raises(UserError, match=r"early has no checkpoint$"):
        checkpoint_of_name(early / "checkpoint.pkl")


def test_a_run_of_many_agents_wants_one_of_them(tmp_path: Path) -> None:
    run = make_run(tmp_path / "many", final=False)
    agent = make_run(run / "seed_0", 20)
    (agent / "config.yaml").unlink()
    with pytest.raises(UserError, match=r"has 1 agents: name .*seed_0/checkpoint_20.pkl"):
        params_of_name(run / "checkpoint_20.pkl")
