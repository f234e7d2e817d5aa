"""Trainings that share processes and compiled programs (`hackmatrix/cli/together.py`)."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hackmatrix.core.files import open_no_link
from hackmatrix.core.processes import python_module
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.tuning.training import GRACE, Start, arguments, training

COMMAND = python_module("hackmatrix.cli.together")
_DIED = 1  # exit code of a training whose process has ended before it


@contextmanager
def trainings(processes: int, together: int, folder: Path) -> Iterator[Start]:
    """The way to begin trainings: each in a process of its own, or `together` of them in one.

    Args:
        processes: the number of processes, if they are shared.
        together: trainings of a process.
        folder: for what the processes print besides the logs of their trainings.
    """
    if together == 1:
        yield training
        return
    shared = [SharedProcess(folder / f"process-{number}.log") for number in range(processes)]
    try:
        yield lambda config, run: min(shared, key=SharedProcess.load).training(config, run)
    finally:
        for each in shared:
            each.close()


class SharedTraining:
    """A training of a shared process, with the methods of one that has a process of its own."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.returncode: int | None = None
        self.ended = threading.Event()

    def poll(self) -> int | None:
        """The exit code; None while it trains."""
        return self.returncode

    def end(self, code: int) -> None:
        """Sets the exit code."""
        self.returncode = code
        self.ended.set()


class SharedProcess:
    """A process that makes trainings; started by the first one, and again if it has died."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._open: dict[int, SharedTraining] = {}
        self._begun = 0
        self._lock = threading.RLock()

    def load(self) -> int:
        """The number of trainings under way."""
        return len(self._open)

    @contextmanager
    def training(self, config: TrainConfig, run: Path) -> Iterator[SharedTraining]:
        """Trains as `hackmatrix.research.tuning.training.training` does."""
        order = {"argv": arguments(config, run), "log": str(run.with_suffix(".log"))}
        with self._lock:
            self._begun += 1
            training_id, under_way = self._begun, SharedTraining(run)
            process = self._start()
            self._open[training_id] = under_way
            self._send(process, {"number": training_id, **order})
        try:
            yield under_way
        finally:
            if under_way.poll() is None:
                with self._lock:
                    self._send(process, {"number": training_id})
                under_way.ended.wait(GRACE)

    def close(self) -> None:
        """Ends the process with all of its trainings."""
        with self._lock:
            process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
        self._ear.join()

    def _start(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with open(self._log, "ab", opener=open_no_link) as log:
                self._process = subprocess.Popen(
                    COMMAND,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,  # Ctrl+C ends it by way of the search
                )
            self._open = {}
            self._ear = threading.Thread(target=self._hear, args=(self._process, self._open))
            self._ear.start()
        return self._process

    def _hear(self, process: "subprocess.Popen[str]", under_way: dict[int, SharedTraining]) -> None:
        """Notes which trainings have ended; all of them if the process has."""
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout as answers:
            for line in answers:
                answer = json.loads(line)
                with self._lock:
                    under_way.pop(answer["number"]).end(answer["code"])
        code = process.wait()
        with self._lock:
            with suppress(OSError):
                process.stdin.close()
            for each in under_way.values():
                with open(each.run.with_suffix(".log"), "a", opener=open_no_link) as log:
                    log.write(f"its process ended with exit code {code}\n")
                each.end(min(code, 0) or _DIED)
            under_way.clear()

    def _send(self, process: "subprocess.Popen[str]", order: dict[str, object]) -> None:
        assert process.stdin is not None
        with suppress(OSError, ValueError):  # it has died: `_hear` says so
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
