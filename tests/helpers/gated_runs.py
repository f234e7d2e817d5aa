"""Runs in a process of their own, which wait at a gate while a test does something to them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grid_processes import SETTINGS, rows_of
from paths import HELPERS

UPDATES = 20
STEPS = [*SETTINGS, "--total-timesteps", str(UPDATES * 256), "--no-tensorboard"]
TRAIN = [sys.executable, "-m", "grid_command", "train"]
COMMAND = [*TRAIN, *STEPS, "--run-name", "mine"]

Process = subprocess.Popen[bytes]


@contextmanager
def gated(
    folder: Path, command: list[str], *, at: int, **settings: Any
) -> Iterator[tuple[Process, Path]]:
    """The process, and the gate: a file that lets it make more than `at` updates when it goes."""
    gate = folder / "gate"
    gate.touch()
    environment = {**os.environ, "PYTHONPATH": str(HELPERS), "TERM": "xterm"}
    environment |= {"GATE": str(gate), "GATE_AT": str(at)}
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


def wait_for(condition: Callable[[], bool], process: Process) -> None:
    give_up = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < give_up
        time.sleep(0.05)


def has_logged(run: Path, text: str) -> bool:
    log = run / "log.txt"
    return log.exists() and text in log.read_text()


def assert_finished(process: Process, run: Path, undisturbed: Path) -> None:
    assert process.wait(120) == 0
    assert has_logged(run, f"update {UPDATES}/{UPDATES}")
    assert has_logged(run, f"checkpoint: update {UPDATES} saved")
    assert_same(run, undisturbed)


def assert_same(run: Path, undisturbed: Path) -> None:
    """The rows of metrics and the final params, bit for bit."""
    assert rows_of(run) == rows_of(undisturbed)
    name = "final_params.npz"
    assert (run / name).read_bytes() == (undisturbed / name).read_bytes()
