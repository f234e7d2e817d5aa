"""Processes of gcloud: their output, and commands that hang or are missing."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread, main_thread
from traceback import walk_stack

import pytest

from hackmatrix.cloud.tpu.gcloud import NO_GCLOUD, TIMED_OUT, Gcloud


def test_lines_are_printed_before_they_run_and_looks_once() -> None:
    told: list[str] = []
    gcloud = Gcloud(told.append)
    for _ in range(2):
        gcloud.run(["echo", "a b"])
        gcloud.run(["true", "look"], quiet=True)
    assert told == ["$ echo 'a b'", "$ true look", "$ echo 'a b'"]
    dry = Gcloud(told.append, dry_run=True)
    assert dry.run(["no-such-gcloud"]).code == dry.show(["no-such-gcloud"]).code == 0
    assert told[3:] == ["$ no-such-gcloud"] * 2


def test_output_and_exit_code() -> None:
    gcloud = Gcloud(lambda _: None)
    assert gcloud.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, "out\n", "err\n")
    assert gcloud.show(["sh", "-c", "echo err >&2; exit 3"]) == (3, "", "err\n")
    hung = gcloud.run(["sleep", "60"], timeout=0.05)
    assert hung == (TIMED_OUT, "", "ERROR: timed out after 0.05 s")
    assert gcloud.run(["no-such-gcloud"]) == gcloud.show(["no-such-gcloud"]) == NO_GCLOUD


@pytest.mark.parametrize("way", ["timeout", "ctrl+c"])
def test_what_a_command_has_started_ends_with_it(way: str, tmp_path: Path) -> None:
    started = tmp_path / "started"  # as gcloud, a script, starts ssh, in a session of its own
    script = f"setsid sleep 60 & echo $! > {started}.new; mv {started}.new {started}; wait"

    def interrupt() -> None:
        until(lambda: started.exists() and "communicate" in functions_of(main_thread()))
        os.kill(os.getpid(), signal.SIGINT)

    gcloud = Gcloud(lambda _: None)
    if way == "timeout":
        assert gcloud.run(["sh", "-c", script], timeout=1.0).code == TIMED_OUT
    else:
        Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            gcloud.run(["sh", "-c", script], timeout=60.0)
    child = int(started.read_text())
    until(lambda: not is_running(child))


def functions_of(thread: Thread) -> list[str]:
    """The names of the functions that a thread is in."""
    frame = sys._current_frames()[thread.ident or 0]
    return [frame.f_code.co_name for frame, _ in walk_stack(frame)]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether a process works; one that has ended may wait for somebody to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
