"""The interface of experiment trackers such as TensorBoard and Weights & Biases."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
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
