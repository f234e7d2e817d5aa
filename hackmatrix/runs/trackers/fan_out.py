"""All trackers of a run, as the training loop uses them."""

import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hackmatrix.runs.trackers.tensorboard import TensorBoard
from hackmatrix.runs.trackers.tracker import Background, Say, TrackedRun, Tracker
from hackmatrix.runs.trackers.weights_and_biases import WeightsAndBiases

# Keys are the settings that switch a tracker off; one without such a setting is always used.
TRACKERS: dict[str, Callable[[TrackedRun], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


class Trackers:
    """Forwards metrics, alarms and artifacts to all trackers; a context manager that closes them.

    No method raises or blocks, whatever a tracker does; only closing waits, for some seconds.
    """

    def __init__(self, trackers: Sequence[Tracker], say: Say) -> None:
        self._all = [Background(tracker, say) for tracker in trackers]

    @classmethod
    def open(cls, run: TrackedRun, say: Say) -> Self:
        """The trackers that the run's settings do not switch off.

        They start with the first thing that they are told, or with `start`.

        Args:
            run: the facts of the run.
            say: is called with lines for the user, from any thread.
        """
        wanted = [make for setting, make in TRACKERS.items() if run.config.get(setting, True)]
        return cls([make(run) for make in wanted], say)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(failed=exc_type is not None)

    def start(self) -> None:
        """Starts the trackers that have not started yet; returns without waiting."""
        for each in self._all:
            each.start()

    def log(self, update: int, timesteps: int, row: Mapping[str, Any]) -> None:
        """Records a row of metrics; values that are not numbers are left out."""
        numbers = {name: float(value) for name, value in row.items() if isinstance(value, Real)}
        now = time.time()
        for each in self._all:
            each.call(each.tracker.log, update, timesteps, numbers, now)

    def alarm(self, update: int, name: str, message: str) -> None:
        """Records an alarm."""
        for each in self._all:
            each.call(each.tracker.alarm, update, name, message)

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Records files and folders of a checkpoint, which are in the run's folder."""
        for each in self._all:
            each.call(each.tracker.artifact, update, tuple(files))

    def close(self, *, failed: bool = False) -> None:
        """Closes all trackers, and waits some seconds for their remaining calls."""
        ending, self._all = self._all, []
        for each in ending:
            each.end(failed)
        for each in ending:
            each.wait()
