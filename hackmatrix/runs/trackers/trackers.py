"""All trackers of a run, told by the training loop."""

import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import hackmatrix
from hackmatrix.runs.trackers.background import Background, Tracker
from hackmatrix.runs.trackers.tensorboard import TensorBoard
from hackmatrix.runs.trackers.weights_and_biases import WandbSettings, WeightsAndBiases


class Trackers:
    """What is told to all of them; a context manager that ends them.

    No method raises or waits, whatever a tracker does; only the end waits, for some seconds.
    """

    def __init__(self, trackers: Sequence[Tracker], say: Callable[[str], None]) -> None:
        self._all = [Background(tracker, say) for tracker in trackers]

    @classmethod
    def open(
        cls,
        run: Path,
        *,
        config: Mapping[str, Any],
        tensorboard: bool,
        wandb: WandbSettings | None,
        update: int,
        steps_per_update: int,
        say: Callable[[str], None],
    ) -> Self:
        """Starts those that are wanted; returns at once.

        Args:
            run: the run's folder; its name is the run's.
            config: settings that they show.
            tensorboard: whether to write event files.
            wandb: how to use Weights & Biases; None: not at all.
            update: where the run begins or goes on.
            steps_per_update: actions in all games.
            say: takes lines for the user, from any thread.
        """
        about = {
            "version": hackmatrix.__version__,
            **config,
            "steps_per_update": steps_per_update,
        }
        trackers: list[Tracker] = []
        if tensorboard:
            trackers.append(TensorBoard(run, about, update))
        if wandb is not None:
            trackers.append(WeightsAndBiases(run, about, update, wandb))
        return cls(trackers, say)

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
        numbers = {name: value for name, value in row.items() if isinstance(value, Real)}
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
            each.stop(failed)
        for each in ending:
            each.wait()
