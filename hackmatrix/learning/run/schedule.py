"""Tells what is due after which update. Independent of trainer and files."""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from hackmatrix.learning.run.start import Start
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.train_options import TrainOptions
from hackmatrix.learning.trainer.algorithm import Hyperparameters
from hackmatrix.learning.trainer.config import AlgorithmConfig, Course


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
