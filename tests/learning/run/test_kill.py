"""A run that is killed: it goes on from the newest checkpoint as if nothing had happened.

Kills at many other moments, also in a save: `faults/test_schedules.py`.
"""

import signal
import time
from pathlib import Path

import pytest
from grid_processes import SETTINGS, finish, rows_of, training, wait_for_update

from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint


def assert_same_run(one: Path, other: Path, update: int) -> None:
    mine, theirs = (load_checkpoint(run / "checkpoints" / str(update))[0] for run in (one, other))
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name].tobytes() == theirs[name].tobytes(), name
    assert rows_of(one) == rows_of(other)
    names = ("final_params.npz", f"params_{update}.npz")
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.mark.slow
def test_a_killed_run_that_is_resumed_is_the_run_that_was_not(tmp_path: Path) -> None:
    n = 10
    steps = ["--total-timesteps", str(2 * n * 256), "--save-interval", str(n)]
    finish(tmp_path, *SETTINGS, *steps, "--run-name", "whole")
    killed = tmp_path / "runs" / "killed"
    with training(tmp_path, *SETTINGS, *steps, "--run-name", "killed", stall=n + 2) as process:
        wait_for_update(process, n + 2)
        while not checkpoints_of(killed):
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert [checkpoint.update for checkpoint in checkpoints_of(killed)] == [n]
    assert rows_of(killed)[-1]["update"] == n + 2
    output = finish(tmp_path, "--resume", "runs/killed")
    assert f"resuming runs/killed/checkpoints/{n}, after update {n}" in output
    assert_same_run(tmp_path / "runs" / "whole", killed, 2 * n)
