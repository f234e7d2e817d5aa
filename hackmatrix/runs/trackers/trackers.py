"""All trackers of a run, told by the training loop."""

import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hackmatrix.runs.trackers.background import Background
from hackmatrix.runs.trackers.tensorboard import TensorBoard
from hackmatrix.runs.trackers.tracker import Say, TrackedRun, Tracker
from hackmatrix.runs.trackers.weights_and_biases import WeightsAndBiases

# By the setting that switches each off; one without such a setting is always asked.
TRACKERS: dict[str, Callable[[TrackedRun], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


class Trackers:
    """Passes on what is told to all trackers; a context manager that ends them.

    No method raises or waits, whatever a tracker does; only the end waits, for some seconds.
    """

    def __init__(self, trackers: Sequence[Tracker], say: Say) -> None:
        self._all = [Background(tracker, say) for tracker in trackers]

    @classmethod
    def open(cls, run: TrackedRun, say: Say) -> Self:
        """Starts those that the run's settings do not switch off; returns at once.

        Args:
            run: what they know of the run.
            say: takes lines for the user, from any thread.
        """
        wanted = [make for setting, make in TRACKERS.items() if run.config.get(setting, True)]
        return cls([make(run) for make in wanted], say)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(failed=kind is not None)

    def log(self, update: int, timesteps: int, row: Mapping[str, Any]) -> None:
        """Tells a row of metrics; what is no number is left out."""
        numbers = {name: float(value) for name, value in row.items() if isinstance(value, Real)}
        now = time.time()
        for each in self._all:
            each.call(each.tracker.log, update, timesteps, numbers, now)

    def alarm(self, update: int, name: str, message: str) -> None:
        """Tells an alarm."""
        for each in self._all:
            each.call(each.tracker.alarm, update, name, message)

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Tells files and folders of a checkpoint, which lie in the run's folder."""
        for each in self._all:
            each.call(each.tracker.artifact, update, tuple(files))

    def close(self, *, failed: bool = False) -> None:
        """Ends all of them, and waits some seconds for what they still have to do."""
        ending, self._all = self._all, []
        for each in ending:
            each.end(failed)
        for each in ending:
            each.wait()
