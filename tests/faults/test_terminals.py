"""A run whose terminal goes away: it goes on, and so does its log."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from grid_processes import SETTINGS, finish, rows_of
from paths import HELPERS

UPDATES = 60
STEPS = [*SETTINGS, "--total-timesteps", str(UPDATES * 256), "--no-tensorboard"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    finish(folder, *STEPS, "--run-name", "whole")
    return folder / "runs" / "whole"


def environment(stall: int) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HELPERS), "TERM": "xterm", "STALL_WHILE": str(stall)}


COMMAND = [sys.executable, "-m", "grid_command", "train", *STEPS, "--run-name", "mine"]


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    give_up = time.monotonic() + 120
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < give_up
        time.sleep(0.05)


def has_logged(run: Path, text: str) -> bool:
    log = run / "log.txt"
    return log.exists() and text in log.read_text()


def assert_finished(process: "subprocess.Popen[bytes]", run: Path, undisturbed: Path) -> None:
    assert process.wait(120) == 0
    assert has_logged(run, f"update {UPDATES}/{UPDATES}")
    assert has_logged(run, f"checkpoint: update {UPDATES} saved")
    assert rows_of(run) == rows_of(undisturbed)
    name = "final_params.npz"
    assert (run / name).read_bytes() == (undisturbed / name).read_bytes()


@pytest.mark.parametrize("controlling", [True, False])
def test_a_terminal_that_goes_away_costs_nothing(
    controlling: bool, tmp_path: Path, undisturbed: Path
) -> None:
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        if controlling:  # so the process gets a SIGHUP when the terminal goes
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    gate = tmp_path / "gate"
    gate.touch()
    process = subprocess.Popen(
        COMMAND,
        cwd=tmp_path,
        env={**environment(10), "GATE": str(gate)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    run = tmp_path / "runs" / "mine"
    try:
        wait_for(lambda: drained(ours) and has_logged(run, "update 10/"), process)
        os.close(ours)
        gate.unlink()
        assert_finished(process, run, undisturbed)
        assert has_logged(run, "the terminal is gone, the run goes on") == controlling
    finally:
        process.kill()
        process.wait()


def drained(terminal: int) -> bool:
    """Reads what was printed, as a terminal does, so that the process is never held up."""
    os.set_blocking(terminal, False)
    try:
        while os.read(terminal, 65536):
            pass
    except BlockingIOError:
        pass
    return True


@pytest.mark.parametrize("how", ["pipe", "closed"])
def test_an_output_that_nobody_reads_costs_nothing(
    how: str, tmp_path: Path, undisturbed: Path
) -> None:
    command = COMMAND if how == "pipe" else ["sh", "-c", '"$@" >&- 2>&- <&-', "sh", *COMMAND]
    gate = tmp_path / "gate"
    gate.touch()
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**environment(10), "GATE": str(gate)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    run = tmp_path / "runs" / "mine"
    try:
        wait_for(lambda: has_logged(run, "update 10/"), process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        gate.unlink()
        assert_finished(process, run, undisturbed)
        assert process.stderr.read() == b""
        process.stderr.close()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_hangup_of_a_process_without_a_terminal_stops_it_with_a_checkpoint(
    ignored: bool, tmp_path: Path, undisturbed: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    process = subprocess.Popen(
        COMMAND,
        cwd=tmp_path,
        env={**environment(10), "GATE": str(gate)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) if ignored else None,
    )
    run = tmp_path / "runs" / "mine"
    try:
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
    finally:
        process.kill()
        process.wait()
