"""Runs that are killed: they go on from the newest checkpoint as if nothing had happened."""

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from grid_processes import SETTINGS, finish, rows_of, training, wait_for_update

from hackmatrix.runs.checkpoints import checkpoints_of, is_whole, load_checkpoint


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


KILLS = 30
IN_A_SAVE = 12  # of the kills, at least


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_survives_thirty_kills_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(0)
    interval, updates = 4, 100_000  # far more than it lives to see
    settings = [*SETTINGS, "--total-timesteps", str(updates * 256), "--hidden-dim", "512"]
    settings += ["--save-interval", str(interval)]
    run = tmp_path / "runs" / "killed"
    start = [*settings, "--run-name", "killed"]
    before = hit = 0
    for kill in range(KILLS):
        with training(tmp_path, *start) as process:
            wait_for_update(process, before + 1)
            if kill % 5 < 3:
                hit += kill_in_a_save(process, run, chance)
            else:
                if kill % 5 == 4:
                    wait_for_checkpoint(run, before)
                time.sleep(chance.uniform(0, 1))
                process.send_signal(signal.SIGKILL)
            process.wait()
            rest = process.stdout.read() if process.stdout else ""
        updates_told = [int(update) for update in re.findall(r"^update (\d+)/", rest, re.M)]
        last_told = max(updates_told, default=before + 1)
        checkpoints = checkpoints_of(run)
        for checkpoint in checkpoints:
            assert is_whole(checkpoint.path)
        newest = checkpoints[-1].update if checkpoints else 0
        # One may be under way, and training goes on meanwhile as far as the next.
        assert newest >= last_told - 2 * interval, (kill, newest, last_told)
        assert newest >= before
        start = ["--resume", "runs/killed"]
        before = newest
    assert hit >= IN_A_SAVE
    assert before > 0

    # And all of it together is a run that was never killed.
    end = before + 2 * interval
    steps = ["--total-timesteps", str(end * 256)]
    finish(tmp_path, "--resume", "runs/killed", *steps)
    finish(tmp_path, *settings, *steps, "--run-name", "whole")
    assert_same_run(tmp_path / "runs" / "whole", run, end)


def wait_for_checkpoint(run: Path, before: int) -> None:
    """Until there is one of a later update, however slow the machine is."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(checkpoint.update > before for checkpoint in checkpoints_of(run)):
            return
        time.sleep(0.05)
    pytest.fail("no checkpoint is finished")


def kill_in_a_save(process: subprocess.Popen[str], run: Path, chance: random.Random) -> bool:
    """Kills while a checkpoint is being written; whether that came out."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any((run / "checkpoints").glob(".saving-*")):
            time.sleep(chance.uniform(0, 0.03))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return any((run / "checkpoints").glob(".saving-*"))
    pytest.fail("nothing is saved")
