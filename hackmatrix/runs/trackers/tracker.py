"""What a tracker is: the one face of TensorBoard, Weights & Biases and those to come."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

_LONGEST = 300  # characters of what an exception says

Say = Callable[[str], None]


class TrackedRun(NamedTuple):
    """What a tracker knows of the run."""

    folder: Path  # its name is the run's
    config: Mapping[str, Any]  # the run's settings, also those of trackers
    update: int = 0  # where the run begins or goes on
    rewind: bool = False  # whether a history after `update` is to be cut off where it is kept


class Unavailable(Exception):
    """A tracker can't be used here: a line that says why, and how to get it."""


class Tracker(Protocol):
    """Shows a run elsewhere. It is made with a `TrackedRun`; `start` does what takes time.

    All methods are called in one thread, the tracker's own. They may wait and raise: then the
    tracker is off for the rest of the run, which goes on.
    """

    name: str

    def start(self, say: Say) -> None:
        """Opens it; from now on it may `say` lines of its own.

        Raises:
            Unavailable: it can't be used here.
        """

    def log(self, update: int, timesteps: int, row: Mapping[str, float], when: float) -> None:
        """Takes a row of metrics, measured at the time `when` (seconds since 1970)."""

    def alarm(self, update: int, name: str, message: str) -> None:
        """Takes an alarm."""

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Takes files and folders of a checkpoint, which lie in the run's folder."""

    def finish(self, failed: bool) -> None:
        """Closes it."""


def one_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
