"""Handles Ctrl+C, SIGTERM and SIGHUP as a request to stop between updates, with a checkpoint."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_HANGUP = getattr(signal, "SIGHUP", None)  # None on Windows
_AT_ONCE = (signal.SIGINT, signal.SIGTERM)  # these end the process if they come a second time


class StopRequest:
    """Context in which the first signal is stored in `signal`; a second one ends the process.

    A terminal that is gone is no request: the SIGHUP that tells of it leaves the run alone. Other
    SIGHUPs are requests, unless the process was told to ignore them (`nohup`); none of them is a
    second signal, as service managers send one right after SIGTERM.

    Python allows signal handlers in the main thread only. In another thread nothing is requested,
    and signals do what the program wants.

    Args:
        on_request: called when the first signal arrives.
        on_hangup: called when the terminal is gone.
        same_within: seconds in which a further signal is the first one again: it may come to a
            process directly and from its parent.
    """

    def __init__(
        self,
        on_request: Callable[[], None],
        on_hangup: Callable[[], None],
        same_within: float = 0.0,
    ) -> None:
        self.signal: signal.Signals | None = None
        self._same_within = same_within
        self._since: float | None = None  # when this process got the first one
        self._on_request = on_request
        self._on_hangup = on_hangup
        self._before: dict[signal.Signals, Any] = {}
        self._on_terminal = False

    @property
    def is_requested(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal is not None

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._on_terminal = _has_terminal()
        self._before = {number: signal.signal(number, self._request) for number in _AT_ONCE}
        if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
            self._before[_HANGUP] = signal.signal(_HANGUP, self._hear_hangup)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
            if not self._same_within:
                self._restore()
            if not self.is_requested:  # else another process has got one, and told this one
                self.signal = signal.Signals(signum)
                self._on_request()
        elif now - self._since > self._same_within:
            self._restore()
            signal.raise_signal(signum)

    def _restore(self) -> None:
        for each in _AT_ONCE:
            signal.signal(each, self._before[each])

    def _hear_hangup(self, signum: int, frame: FrameType | None) -> None:
        if self._on_terminal and not _has_terminal():
            self._on_terminal = False
            self._on_hangup()
            signal.signal(signum, signal.SIG_IGN)  # the shell and the system may both send it
        elif not self.is_requested:
            self._request(signum, frame)


def _has_terminal() -> bool:
    """Whether the process has a controlling terminal, and that terminal is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return False
    return True
