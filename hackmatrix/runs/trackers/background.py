"""A tracker in a thread of its own: whatever it does, training goes on."""

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

from hackmatrix.runs.trackers.tracker import Say, Tracker, Unavailable, one_line

LIMIT = 1_000  # calls that wait for a slow tracker
QUIET_SECONDS = 2.0  # that the end of a run waits without a word
END_SECONDS = 40.0  # that it waits at most


class Background:
    """Runs a tracker; no method raises, and none but `wait` waits."""

    def __init__(self, tracker: Tracker, say: Say) -> None:
        self.tracker = tracker
        self._say = say
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._dropped = self._off = False
        self._thread = threading.Thread(
            target=self._work, name=f"tracker {tracker.name}", daemon=True
        )
        self._thread.start()

    def call(self, method: Callable[..., None], *arguments: object) -> None:
        """Has a method of the tracker called; drops the call if too many are waiting."""
        if self._off:
            return
        if self._calls.qsize() < LIMIT:
            self._calls.put(partial(method, *arguments))
        elif not self._dropped:
            self._dropped = True
            self._tell(f"{LIMIT:,} rows behind; what it can't take is left out")

    def end(self, failed: bool) -> None:
        """Has the tracker finish after what is waiting for it."""
        self._calls.put(partial(self.tracker.finish, failed))
        self._calls.put(None)

    def wait(self) -> None:
        """Waits until it has finished, but not for ever."""
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
            self._tell(str(reason))
        except BaseException as error:  # W&B raises SystemExit, too
            self._tell(f"{one_line(error)}; it is off for the rest of this run")
        finally:
            self._off = True

    def _tell(self, text: str) -> None:
        self._say(f"{self.tracker.name}: {text}")
