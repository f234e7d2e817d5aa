"""Runs a tracker in its own thread, so that it can neither block nor stop training."""

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

from hackmatrix.runs.trackers.tracker import Say, Tracker, Unavailable, one_line

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
