"""The schedule of a run: work that is due after updates, and the compiled calls between."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple, Self

import jax
import numpy as np

from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.snapshots import LoopState
from hackmatrix.learning.run.start import Start
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.trainer.algorithm import Hyperparameters
from hackmatrix.learning.trainer.anomalies import Anomaly
from hackmatrix.learning.trainer.config import AlgorithmConfig, Course
from hackmatrix.learning.trainer.measures import Measures
from hackmatrix.learning.trainer.trainer import Trainer


@dataclass(frozen=True)
class Schedule:
    """When a run logs, evaluates, saves, profiles and ends, in updates."""

    num_updates: int  # the run's last update
    log_interval: int
    eval_interval: int | None = None  # None: never
    save_interval: int | None = None  # None: by the clock
    save_seconds: float = float("inf")  # between two saves by the clock
    profiled: int | None = None  # the update to trace, counted from 1; None: none

    @classmethod
    def of(
        cls, config: TrainConfig, course: Course, options: TrainOptions, first_update: int
    ) -> Self:
        """The schedule for a configuration and options.

        Args:
            config: holds the intervals.
            course: holds the run's length.
            options: hold the update to trace, if any; if it is past, the first one is.
            first_update: number of updates before this process.

        A run that is shorter than the interval of its checkpoints saves them by the clock.
        """
        save_updates = config.save_updates
        if save_updates is not None and save_updates > course.num_updates:
            save_updates = None
        profiled = max(options.profile_step, first_update + 1) if options.profile else None
        return cls(
            course.num_updates,
            config.report.log_interval,
            config.report.eval_interval,
            save_updates,
            60 * config.run.save_interval_minutes,
            profiled,
        )

    def notes(self, config: TrainConfig) -> list[str]:
        """A line of text about each interval of a configuration that exceeds the run."""
        length = f"exceeds the run's {self.num_updates:,} updates"
        wanted = {
            "checkpoints": (config.save_updates, f"one every {self.save_seconds / 60:g} minutes"),
            "evaluations": (config.report.eval_interval, "one at its end"),
            "metrics": (config.report.log_interval, "one line at its end"),
        }
        return [
            f"the interval of {what}, {interval:,} updates, {length}: {instead}"
            for what, (interval, instead) in wanted.items()
            if interval is not None and interval > self.num_updates
        ]

    def next_due(self, update: int) -> int:
        """The next update after which something is due, where a call of many updates has to end.

        The update before a traced one counts too, because the traced one gets a call of its own.
        Saves by the clock do not count: they wait for the end of a call.
        """
        intervals = (self.log_interval, self.eval_interval, self.save_interval)
        due = [(update // each + 1) * each for each in intervals if each is not None]
        if self.profiled is not None:
            due += [each for each in (self.profiled - 1, self.profiled) if each > update]
        return min(self.num_updates, *due)

    def is_log_due(self, update: int) -> bool:
        """Whether metrics are due after this update."""
        return update % self.log_interval == 0 or update == self.num_updates

    def is_evaluation_due(self, update: int) -> bool:
        """Whether an evaluation is due after this update."""
        if self.eval_interval is None:
            return False
        return update % self.eval_interval == 0 or update == self.num_updates

    def is_save_due(self, update: int, seconds: float) -> bool:
        """Whether a checkpoint is due after this update.

        Args:
            update: number of updates so far.
            seconds: since the last checkpoint.
        """
        if self.save_interval is not None:
            return update % self.save_interval == 0
        return seconds >= self.save_seconds


def note_on_learning_rate(config: AlgorithmConfig, start: Start) -> str | None:
    """A line of text where another length of a resumed run makes its learning rate jump."""
    if start.checkpoint is None:
        return None
    settings = start.checkpoint.facts.config
    shared = {each.name: settings[each.name] for each in fields(config) if each.name in settings}
    earlier = replace(config, **shared)
    same = (earlier.lr, earlier.lr_schedule) == (config.lr, config.lr_schedule)
    length = earlier.total_timesteps
    if config.lr_schedule == "constant" or not same or length == config.total_timesteps:
        return None
    previous, due = (
        float(Hyperparameters.of(each, start.course(each)).learning_rate(update, np))
        for each, update in ((earlier, start.update - 1), (config, start.update))
    )
    return (
        f"learning rate: {previous:.3g} before, {due:.3g} from here on, as the schedule "
        f"{config.lr_schedule} now spans {config.total_timesteps:,} steps, not {length:,}; "
        f"--lr-schedule constant --lr {previous:.3g} keeps it"
    )


# --- Compiled programs that the trainings of a process share, and take turns to run ---------------


class SharedPrograms:
    """Trainers by all that their programs depend on, and whose turn it is on the devices.

    Trainings in threads of one process share it (`hackmatrix tune --together`); one by itself has
    its own.
    """

    def __init__(self) -> None:
        """No program yet."""
        self.trainers: dict[Hashable, Trainer] = {}
        self._tickets = itertools.count()
        self._serving = 0
        self._next = threading.Condition()

    def get(self, key: Hashable, make: Callable[[], Trainer]) -> Trainer:
        """The trainer with these programs; made if there is none. To call in one's turn."""
        if key not in self.trainers:
            self.trainers[key] = make()
        return self.trainers[key]

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Waits until all who came before have compiled or computed.

        Two programs with collectives, at the same time on the same CPU devices, may block each
        other forever; and a lock goes to whoever is quickest, often the one that has just had it.
        """
        with self._next:
            ticket = next(self._tickets)
            self._next.wait_for(lambda: self._serving == ticket)
        try:
            yield
        finally:
            with self._next:
                self._serving += 1
                self._next.notify_all()


# --- Runs the trainer in compiled calls of some updates each; collects their metrics and timing ---


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
