"""`hackmatrix data record` that is killed: its processes end, and its files go."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hackmatrix.cli.main import main
from hackmatrix.research.datasets.folder import new_data_set


def recording(folder: Path) -> "subprocess.Popen[bytes]":
    command = ["data", "record", "games", "--agent", "scripted", "--episodes", "1000000"]
    command += ["--max-steps", "100"]  # what is being played at the end is played to its end
    return subprocess.Popen([sys.executable, "-m", "hackmatrix", *command], cwd=folder)


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, from /proc."""
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # a container may have nobody who asks for its exit code


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_killed_recording_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    process = recording(tmp_path)
    try:
        wait_for(lambda: len(children_of(process.pid)) > 1)  # one is Python's, for its semaphores
        time.sleep(1)
        children = children_of(process.pid)
        assert children
        process.send_signal(number)
        code = process.wait(60)
        wait_for(lambda: not any(map(is_alive, children)))
    finally:
        process.kill()
        process.wait()
    left = [path.name for path in tmp_path.iterdir()]
    if number is signal.SIGTERM:
        assert (code, left) == (143, [])
    else:
        assert left == [f".saving-games-{process.pid}"]
        path = tmp_path / "games"
        short = ["--agent", "scripted", "--episodes", "1", "--max-steps", "9"]
        assert main(["data", "record", str(path), *short]) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["games"]


def test_a_recording_under_way_is_left_alone_by_another_one_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "games"
    other = tmp_path / ".saving-games-1"
    with new_data_set(path):
        mine = tmp_path / f".saving-games-{os.getpid()}"
        mine.rename(other)  # that of another process, which holds its lock
        with pytest.raises(KeyError), new_data_set(path):
            raise KeyError
        assert other.is_dir()
        other.rename(mine)
    assert [each.name for each in tmp_path.iterdir()] == ["games"]
