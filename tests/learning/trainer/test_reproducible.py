"""The same seed on the same device gives the same run."""

import json
from pathlib import Path

import numpy as np
import pytest
from grid_processes import SETTINGS, finish, rows_of

import hackmatrix
from hackmatrix.runs.checkpoints import load_checkpoint

FLAGS = [*SETTINGS, "--num-seeds=2", "--seed=3", "--save-interval=4", "--total-timesteps=1536"]


def made(folder: Path, name: str, hash_seed: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in a process of its own, in which the order of sets is another one."""
    monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
    finish(folder, *FLAGS, f"--run-name={name}")
    return folder / "runs" / name


def params_of(run: Path) -> dict[str, bytes]:
    """The content of each file of params, to the last bit."""
    return {
        f"{path.relative_to(run)} {name}": array.tobytes()
        for path in sorted(run.rglob("*.npz"))
        for name, array in np.load(path).items()
    }


@pytest.mark.slow
def test_the_same_command_gives_the_same_run_and_the_run_says_what_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(tmp_path, "first", "1", monkeypatch)
    again = made(tmp_path, "again", "2", monkeypatch)
    assert len(params_of(first)) == 2 * 3 * 8  # agents, files, arrays
    assert params_of(first) == params_of(again)
    assert [row["update"] for row in rows_of(first)] == [1, 2, 3, 4, 5, 6]
    assert rows_of(first) == rows_of(again)
    assert (first / "config.yaml").read_text() == (again / "config.yaml").read_text()
    (held, facts), (expected, same) = (
        load_checkpoint(run / "checkpoints" / "6") for run in (first, again)
    )
    assert facts == same
    assert {n: a.tobytes() for n, a in held.items()} == {
        n: a.tobytes() for n, a in expected.items()
    }
    # Another seed is another run.
    assert not set(params_of(first / "seed_3").values()) & set(params_of(first / "seed_4").values())

    (start,) = map(json.loads, (first / "starts.jsonl").read_text().splitlines())
    assert start["command"][1:] == ["train", *FLAGS, "--run-name=first"]
    assert start["versions"]["hackmatrix"] == hackmatrix.__version__
    assert {"jax", "jaxlib", "numpy", "python"} <= start["versions"].keys()
    assert (start["device"], start["devices"]) == ("cpu", 1)
    assert (start["commit"] or "")[:7].isalnum() == bool(start["commit"])
