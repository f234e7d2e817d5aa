"""A run whose terminal goes away: it goes on, and so does its log.

That its results stay the same to the last bit, and what other hangups do: `learning/run/test_loop`.
"""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from grid_processes import SETTINGS
from paths import HELPERS

pytestmark = pytest.mark.thorough

STEPS = [*SETTINGS, "--total-timesteps", str(6 * 256), "--no-tensorboard", "--run-name", "mine"]
COMMAND = [sys.executable, "-m", "grid_command", "train", *STEPS]
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@contextmanager
def gated(
    folder: Path, command: list[str], **settings: Any
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The process, and the gate: a file that lets it make more than three updates when it goes."""
    gate = folder / "gate"
    gate.touch()
    environment = {**os.environ, "PYTHONPATH": str(HELPERS), "TERM": "xterm"}
    environment |= {"GATE": str(gate), "GATE_AT": "3"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=folder, env=environment, **(streams | settings))
    try:
        yield process, gate
    finally:
        gate.unlink(missing_ok=True)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < give_up
        time.sleep(0.05)


def has_logged(run: Path, text: str) -> bool:
    log = run / "log.txt"
    return log.exists() and text in log.read_text()


def assert_finished(process: subprocess.Popen[bytes], run: Path) -> None:
    assert process.wait(120) == 0
    assert has_logged(run, "update 6/6")
    assert has_logged(run, "checkpoint: update 6 saved")


@pytest.mark.slow
def test_a_terminal_that_goes_away_costs_nothing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    # It controls the process, which gets a SIGHUP when the terminal goes.
    command = [sys.executable, "-c", TAKE_TERMINAL, *COMMAND]
    run = tmp_path / "runs" / "mine"
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    with gated(tmp_path, command, start_new_session=True, **streams) as (process, gate):
        os.close(theirs)
        wait_for(lambda: drained(ours) and has_logged(run, "update 3/"), process)
        os.close(ours)
        gate.unlink()
        assert_finished(process, run)
    assert has_logged(run, "the terminal is gone, the run goes on")


def drained(terminal: int) -> bool:
    """Reads what was printed, as a terminal does, so that the process is never held up."""
    os.set_blocking(terminal, False)
    try:
        while os.read(terminal, 65536):
            pass
    except BlockingIOError:
        pass
    return True


@pytest.mark.slow
@pytest.mark.parametrize("how", ["pipe", "closed"])
def test_an_output_that_nobody_reads_costs_nothing(how: str, tmp_path: Path) -> None:
    command = COMMAND if how == "pipe" else ["sh", "-c", '"$@" >&- 2>&- <&-', "sh", *COMMAND]
    run = tmp_path / "runs" / "mine"
    with gated(tmp_path, command) as (process, gate):
        wait_for(lambda: has_logged(run, "update 3/"), process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        gate.unlink()
        assert_finished(process, run)
        assert process.stderr.read() == b""
