"""The interface of experiment trackers such as TensorBoard and Weights & Biases."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

_LONGEST = 300  # characters of an exception's message

Say = Callable[[str], None]


class TrackedRun(NamedTuple):
    """The facts of a run that a tracker gets."""

    folder: Path  # its name is the run's
    config: Mapping[str, Any]  # the run's settings, those of trackers included
    update: int = 0  # update at which the run starts or resumes
    rewind: bool = False  # whether to delete recorded history after `update`


class Unavailable(Exception):
    """A tracker can't be used here; the message says why, and how to make it available."""


class Tracker(Protocol):
    """Records a run in another tool. It is created with a `TrackedRun`; `start` does slow work.

    All methods are called in the tracker's own thread. They may block and raise: after an exception
    the tracker is off for the rest of the run, which continues.
    """

    name: str

    def start(self, say: Say) -> None:
        """Opens the tracker; from now on it may call `say` with lines for the user.

        Raises:
            Unavailable: it can't be used here.
        """

    def log(self, update: int, timesteps: int, row: Mapping[str, float], when: float) -> None:
        """Records a row of metrics, measured at the time `when` (seconds since 1970)."""

    def alarm(self, update: int, name: str, message: str) -> None:
        """Records an alarm."""

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Records files and folders of a checkpoint, which are in the run's folder."""

    def finish(self, failed: bool) -> None:
        """Closes the tracker."""


def one_line(error: BaseException) -> str:
    """An exception's message on one line, at most 300 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


# --- Runs a tracker in its own thread, so that it can neither block nor stop training -------------


LIMIT = 1_000  # maximum number of calls queued for a slow tracker
QUIET_SECONDS = 2.0  # seconds of waiting at the end of a run before a message
END_SECONDS = 40.0  # maximum seconds of further waiting


class Background:
    """Calls a tracker's methods in a thread.

    Its own methods never raise, and only `wait` blocks.
    """

    def __init__(self, tracker: Tracker, say: Say) -> None:
        self.tracker = tracker
        self._say = say
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._dropped = self._off = False
        self._thread = threading.Thread(
            target=self._work, name=f"tracker {tracker.name}", daemon=True
        )

    def start(self) -> None:
        """Starts the tracker, if nothing has started it yet."""
        if self._thread.ident is None:
            self._thread.start()

    def call(self, method: Callable[..., None], *arguments: object) -> None:
        """Queues a call of one of the tracker's methods; drops it if the queue is full."""
        self.start()
        if self._off:
            return
        if self._calls.qsize() < LIMIT:
            self._calls.put(partial(method, *arguments))
        elif not self._dropped:
            self._dropped = True
            self._tell(f"{LIMIT:,} rows behind; what it can't take is left out")

    def end(self, failed: bool) -> None:
        """Queues the tracker's `finish` after the calls that are waiting."""
        self.start()
        self._calls.put(partial(self.tracker.finish, failed))
        self._calls.put(None)

    def wait(self) -> None:
        """Waits until the tracker has finished, up to a time limit."""
        self._thread.join(QUIET_SECONDS)
        if self._thread.is_alive():
            self._tell(f"takes what is left, for {END_SECONDS:.0f} s at most")
            self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            self._tell("does not answer, and is left behind")
            self._say = lambda _: None

    def _work(self) -> None:
        try:
            self.tracker.start(self._tell)
            while (call := self._calls.get()) is not None:
                call()
        except Unavailable as reason:
            if text := str(reason):
                self._tell(text)
        except BaseException as error:  # W&B raises SystemExit, too
            self._tell(f"{one_line(error)}; it is off for the rest of this run")
        finally:
            self._off = True

    def _tell(self, text: str) -> None:
        self._say(f"{self.tracker.name}: {text}")
