"""A run whose terminal goes away: it goes on, and so does its log."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gated_runs import COMMAND, STEPS, assert_finished, gated, has_logged, wait_for
from grid_processes import finish, rows_of

pytestmark = pytest.mark.thorough

TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    finish(folder, *STEPS, "--run-name", "whole")
    return folder / "runs" / "whole"


@pytest.mark.parametrize("controlling", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_terminal_that_goes_away_costs_nothing(
    controlling: bool, tmp_path: Path, undisturbed: Path
) -> None:
    ours, theirs = pty.openpty()
    command = COMMAND
    if controlling:  # so the process gets a SIGHUP when the terminal goes
        command = [sys.executable, "-c", TAKE_TERMINAL, *COMMAND]
    run = tmp_path / "runs" / "mine"
    with gated(
        tmp_path,
        command,
        at=10,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as (process, gate):
        os.close(theirs)
        wait_for(lambda: drained(ours) and has_logged(run, "update 10/"), process)
        os.close(ours)
        gate.unlink()
        assert_finished(process, run, undisturbed)
    assert has_logged(run, "the terminal is gone, the run goes on") == controlling


def drained(terminal: int) -> bool:
    """Reads what was printed, as a terminal does, so that the process is never held up."""
    os.set_blocking(terminal, False)
    try:
        while os.read(terminal, 65536):
            pass
    except BlockingIOError:
        pass
    return True


@pytest.mark.parametrize("how", ["pipe", pytest.param("closed", marks=pytest.mark.slow)])
def test_an_output_that_nobody_reads_costs_nothing(
    how: str, tmp_path: Path, undisturbed: Path
) -> None:
    command = COMMAND if how == "pipe" else ["sh", "-c", '"$@" >&- 2>&- <&-', "sh", *COMMAND]
    run = tmp_path / "runs" / "mine"
    with gated(tmp_path, command, at=10) as (process, gate):
        wait_for(lambda: has_logged(run, "update 10/"), process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        gate.unlink()
        assert_finished(process, run, undisturbed)
        assert process.stderr.read() == b""


@pytest.mark.parametrize("ignored", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_hangup_of_a_process_without_a_terminal_stops_it_with_a_checkpoint(
    ignored: bool, tmp_path: Path, undisturbed: Path
) -> None:
    run = tmp_path / "runs" / "mine"
    with gated(
        tmp_path,
        ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *COMMAND] if ignored else COMMAND,
        at=10,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as (process, gate):
        wait_for(lambda: has_logged(run, "update 10/"), process)
        process.send_signal(signal.SIGHUP)
        if not ignored:
            wait_for(lambda: has_logged(run, "stopping after this update"), process)
            process.send_signal(signal.SIGHUP)  # a second one does not hurry it
        gate.unlink()
        if ignored:  # as by nohup
            assert_finished(process, run, undisturbed)
            return
        assert process.wait(60) == 128 + signal.SIGHUP
    assert has_logged(run, "checkpoint: update 11 saved")
    finish(tmp_path, "--resume", "runs/mine")
    assert rows_of(run)[-1] == rows_of(undisturbed)[-1]
