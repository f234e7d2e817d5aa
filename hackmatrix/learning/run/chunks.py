"""Runs the trainer in compiled calls of some updates each; collects their metrics and timing."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax

from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.loop_state import LoopState
from hackmatrix.learning.run.schedule import Schedule
from hackmatrix.learning.run.shared_programs import SharedPrograms
from hackmatrix.learning.settings.train_options import TrainOptions
from hackmatrix.learning.trainer.anomalies import Anomaly
from hackmatrix.learning.trainer.measures import Measures
from hackmatrix.learning.trainer.trainer import Trainer

CALL_SECONDS = 1.0  # target length of a compiled call: signals and the display wait for its end


class Timing(NamedTuple):
    """Number of updates, and the seconds that they took."""

    updates: int = 0
    seconds: float = 0.0


class Chunks:
    """Advances a run by one compiled call at a time; a call ends where something is due."""

    def __init__(
        self,
        trainer: Trainer,
        programs: SharedPrograms,
        schedule: Schedule,
        options: TrainOptions,
        profiles: Path,
        console: Console,
    ) -> None:
        """Stores the arguments; no call is made yet.

        Args:
            trainer: makes the updates.
            programs: of this process: a call waits for its turn.
            schedule: tells where calls have to end.
            options: options of this command.
            profiles: folder for the trace of an update.
            console: shows the progress.
        """
        self._trainer = trainer
        self._programs = programs
        self._schedule = schedule
        self._options = options
        self._profiles = profiles
        self._console = console
        self._platform: str = trainer.mesh.devices.flat[0].platform
        self._ahead = 1  # number of updates of the next call, if nothing is due before
        self._timing = Timing()
        if schedule.profiled is not None and schedule.profiled > schedule.num_updates:
            console.warn(f"there is no update {schedule.profiled}: nothing will be profiled")

    def advance(self, now: LoopState) -> LoopState:
        """Makes one call and waits for it; donates `now.train`."""
        count = min(self._ahead, self._schedule.next_due(now.update) - now.update)
        profiled = now.update + 1 == self._schedule.profiled
        with self._programs.turn(), self._trace() if profiled else contextlib.nullcontext():
            began = time.perf_counter()
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
        """The agent's seed and the first number that was not finite; None without one."""
        return self._trainer.anomaly(now.train) if self._options.detect_anomaly else None

    def take_sums(self, now: LoopState) -> tuple[LoopState, Measures, Timing]:
        """Takes the accumulated metrics and the timing since the last call of this method.

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
    """Number of updates in one call; 1 on CPU, where a call costs almost nothing."""
    return 1 if platform == "cpu" else max(1, int(CALL_SECONDS / seconds_per_update))


def _debug_line(update: int, count: int, seconds: float) -> str:
    memory = [device.memory_stats() for device in jax.local_devices()]
    used = [each["bytes_in_use"] / 2**20 for each in memory if each and "bytes_in_use" in each]
    shown = f", {max(used):,.0f} MiB in use on the fullest device" if used else ""
    return f"call of {count} to update {update:,}: {seconds:.3f} s{shown}"
