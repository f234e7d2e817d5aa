"""Handles Ctrl+C and SIGTERM as a request to stop, so that a run ends between updates and saves."""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Context in which the first signal is stored in `signal`; a second one ends the process.

    Python allows signal handlers in the main thread only: enter it there.
    """

    def __init__(self, on_request: Callable[[], None]) -> None:
        self.signal: signal.Signals | None = None
        self._on_request = on_request
        self._before: dict[signal.Signals, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal is not None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._request) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.signal = signal.Signals(number)
        self._restore()
        self._on_request()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
