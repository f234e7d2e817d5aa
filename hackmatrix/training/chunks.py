"""The trainer as the loop sees it: compiled calls of some updates each, and what they measured."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax

from hackmatrix.learner.anomalies import Anomaly
from hackmatrix.learner.measures import Measures
from hackmatrix.learner.trainer import Trainer
from hackmatrix.reporting.console import Console
from hackmatrix.settings.options import TrainOptions
from hackmatrix.training.loop_state import LoopState
from hackmatrix.training.schedule import Schedule

CALL_SECONDS = 1.0  # of one compiled call: signals and the display wait for its end


class Timing(NamedTuple):
    """Updates made by some calls, and their seconds."""

    updates: int = 0
    seconds: float = 0.0


class Chunks:
    """Advances a run by one compiled call at a time, each up to what is due next."""

    def __init__(
        self,
        trainer: Trainer,
        schedule: Schedule,
        options: TrainOptions,
        profiles: Path,
        console: Console,
    ) -> None:
        """Makes no call yet.

        Args:
            trainer: makes the updates.
            schedule: says where calls have to end.
            options: of this call of the command.
            profiles: folder for the trace of an update.
            console: is told of the progress.
        """
        self._trainer = trainer
        self._schedule = schedule
        self._options = options
        self._profiles = profiles
        self._console = console
        self._platform: str = trainer.mesh.devices.flat[0].platform
        self._ahead = 1  # updates of the next call, if nothing is due before
        self._timing = Timing()
        if schedule.profiled is not None and schedule.profiled > schedule.num_updates:
            console.warn(f"there is no update {schedule.profiled}: nothing will be profiled")

    def advance(self, now: LoopState) -> LoopState:
        """Makes the updates of one call and waits for them; uses up `now.train`."""
        count = min(self._ahead, self._schedule.next_due(now.update) - now.update)
        profiled = now.update + 1 == self._schedule.profiled
        began = time.perf_counter()
        with self._trace() if profiled else contextlib.nullcontext():
            train = self._trainer.run(now.train, count)
            jax.block_until_ready(train.update)
        seconds = time.perf_counter() - began
        self._timing = Timing(self._timing.updates + count, self._timing.seconds + seconds)
        self._ahead = updates_per_call(self._platform, seconds / count)
        update = now.update + count
        self._console.advance(update)
        if self._options.debug:
            self._console.say(_debug_line(update, count, seconds))
        return now._replace(train=train, update=update)

    def anomaly(self, now: LoopState) -> tuple[int, Anomaly] | None:
        """The first number that was not finite and the seed of its agent, if it was looked for."""
        return self._trainer.anomaly(now.train) if self._options.detect_anomaly else None

    def take_sums(self, now: LoopState) -> tuple[LoopState, Measures, Timing]:
        """The sums of metrics and the timing of the updates since they were last taken.

        Returns:
            The run with sums of zero, the sums, and the timing of the calls of this process.
        """
        train, sums = self._trainer.take_sums(now.train)
        timing, self._timing = self._timing, Timing()
        return now._replace(train=train, last_logged=now.update), sums, timing

    @contextlib.contextmanager
    def _trace(self) -> Iterator[None]:
        with jax.profiler.trace(str(self._profiles)):
            yield
        update = self._schedule.profiled
        self._console.say(f"profile of update {update}: tensorboard --logdir {self._profiles}")


def updates_per_call(platform: str, seconds_per_update: float) -> int:
    """How many updates to make in one call; on CPU one, as a call costs next to nothing there."""
    return 1 if platform == "cpu" else max(1, int(CALL_SECONDS / seconds_per_update))


def _debug_line(update: int, count: int, seconds: float) -> str:
    memory = [device.memory_stats() for device in jax.local_devices()]
    used = [each["bytes_in_use"] / 2**20 for each in memory if each and "bytes_in_use" in each]
    shown = f", {max(used):,.0f} MiB in use on the fullest device" if used else ""
    return f"call of {count} to update {update:,}: {seconds:.3f} s{shown}"
