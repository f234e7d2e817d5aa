"""A tracker in a thread of its own: whatever it does, training goes on."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

LIMIT = 1_000  # calls that wait for a slow tracker
PATIENCE = 5.0  # seconds for a tracker that does not answer, at the run's end

_GRACE = 2.0  # seconds for a thread whose tracker was abandoned
_LONGEST = 300  # characters of what an exception says

Say = Callable[[str], None]
Row = Mapping[str, float]


class Unavailable(Exception):
    """A tracker can't be used here: a line that says why, and how to get it."""


class Tracker(Protocol):
    """What a tracker can be told; all but `abandon` is called in its own thread."""

    name: str
    finish_seconds: float  # that `finish` may take besides `PATIENCE`
    rest: str  # what to do about what it was told, should it be left behind

    def start(self, say: Say) -> None:
        """Opens it; from now on it may `say` lines of its own."""

    def log(self, update: int, timesteps: int, row: Row, when: float) -> None:
        """Takes a row of metrics, measured at the time `when`."""

    def alarm(self, update: int, name: str, message: str) -> None:
        """Takes an alarm."""

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Takes files and folders of a checkpoint."""

    def flush(self) -> None:
        """Nothing waits: shows what it was told."""

    def finish(self, failed: bool) -> None:
        """Closes it."""

    def abandon(self) -> None:
        """Ends what would keep the process alive: a call hangs, and is no longer waited for."""


class Background:
    """Runs a tracker; no method raises, and none but `wait` takes time."""

    def __init__(self, tracker: Tracker, say: Say) -> None:
        self.tracker = tracker
        self._say = say
        # Takes the end of the run also where it is full, and calls from a handler of signals.
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._dropped = self._off = self._abandoned = self._finishing = False
        self._thread = threading.Thread(
            target=self._work, name=f"tracker {tracker.name}", daemon=True
        )
        self._thread.start()

    def call(self, method: Callable[..., None], *arguments: object) -> None:
        """Has a method of the tracker called; drops the call where too many wait."""
        if self._off:
            return
        if self._calls.qsize() < LIMIT:
            self._calls.put(partial(method, *arguments))
        elif not self._dropped:
            self._dropped = True
            self._tell(f"{LIMIT:,} rows behind; what it can't take is left out")

    def stop(self, failed: bool) -> None:
        """Has the tracker finished after what waits for it."""
        self._calls.put(partial(self._finish, failed))
        self._calls.put(None)

    def wait(self) -> None:
        """Waits until it has finished, but not for ever."""
        tracker = self.tracker
        try:
            self._thread.join(PATIENCE)
            if self._thread.is_alive() and self._finishing and tracker.finish_seconds:
                self._tell(f"takes what is left, for {tracker.finish_seconds:.0f} s at most")
                self._thread.join(tracker.finish_seconds)
        finally:
            if self._thread.is_alive():
                self._tell(f"does not answer, and is left behind{tracker.rest}")
                self._abandoned = True
                tracker.abandon()
                # A thread that wakes up while Python ends may abort the process.
                self._thread.join(_GRACE)

    def _finish(self, failed: bool) -> None:
        self._finishing = True
        self.tracker.finish(failed)

    def _work(self) -> None:
        try:
            self.tracker.start(self._tell)
            while (call := self._calls.get()) is not None:
                call()
                if self._calls.empty():
                    self.tracker.flush()
        except Unavailable as reason:
            self._tell(str(reason))
        except BaseException as error:  # W&B knows SystemExit as well
            self._tell(f"{one_line(error)}; it is off for the rest of this run")
        finally:
            self._off = True

    def _tell(self, text: str) -> None:
        if not self._abandoned:
            self._say(f"{self.tracker.name}: {text}")


def one_line(error: BaseException) -> str:
    """What an exception says, in a line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
