"""Reports metrics, alarms and evaluations of a run to files, the console and trackers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from hackmatrix.environments.interface.metric import Severity
from hackmatrix.learning.reporting.alarms import RETURN, ROW_KEY, HealthOfAgents, parse_row
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.reporting.metrics import (
    AGENTS,
    COLLAPSE,
    describe_agents,
    join_rows,
    summarise,
)
from hackmatrix.learning.run.schedule import Timing
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer import seeds
from hackmatrix.learning.trainer.algorithm import Hyperparameters
from hackmatrix.learning.trainer.anomalies import Anomaly
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.runs.checkpoints import OF_AGENTS, Evaluation
from hackmatrix.runs.folder import LostFolderError, RunFolder
from hackmatrix.runs.trackers import Trackers

EVAL = "eval/"  # before the name of a metric of evaluations


class Reporter:
    """Writes metrics, alarms and evaluations to `metrics.jsonl`, the console and the trackers."""

    def __init__(
        self,
        run: RunFolder,
        config: TrainConfig,
        trainer: Trainer,
        course: Course,
        console: Console,
        trackers: Trackers,
    ) -> None:
        """Reads the rows that the run already has, so that their alarms are not raised again."""
        self._run = run
        self._config = config.learning
        self._seeds = config.run.seeds
        self._stops = config.report.on_unhealthy == "stop"
        self._metrics = trainer.metrics
        self._course = course
        self._hyper = Hyperparameters.of(config.learning, course)
        self._console = console
        self._trackers = trackers
        self._write_failed = False
        self._has_evaluated = False
        self._health = HealthOfAgents(self._metrics)
        for row in run.metrics():
            self._health.check(row["update"], parse_row(row))

    def begin(self, first_update: int) -> None:
        """Shows the start of training on the console, after `first_update` updates."""
        total = self._course.num_updates
        self._console.begin(
            self._run.path.name,
            self._metrics,
            total,
            self._config.batch_size,
            first_update,
            self._course.timesteps(first_update),
        )
        if first_update >= total:
            self._console.say(f"all {total:,} updates are made; a higher --total-timesteps goes on")

    @property
    def is_critical(self) -> bool:
        """Whether a critical alarm holds for the last row of metrics, of many agents for all."""
        return self._health.worst is Severity.CRITICAL

    @property
    def has_collapsed(self) -> bool:
        """Whether every agent's policy had collapsed at the last row of metrics."""
        return self._health.holds(COLLAPSE)

    def warn_all_broken(self, update: int) -> None:
        """Warns that no agent's params are finite, which ends the run."""
        self._console.warn(
            f"no params are finite at update {update:,}: the run ends; --detect-anomaly with "
            "--resume names the first bad tensor"
        )

    def is_to_stop(self) -> bool:
        """Whether `--on-unhealthy stop` ends the run; if so, says it on the console.

        It does if a critical alarm holds for the last row of metrics; with many agents, for all of
        them.
        """
        stop = self._stops and self.is_critical
        if stop:
            self._console.say("stopped by --on-unhealthy stop")
        return stop

    def metrics(self, update: int, sums: Any, timing: Timing) -> None:
        """Reports a row of metrics and the alarms that it raises.

        Args:
            update: number of updates so far.
            sums: metrics accumulated since the last row, see `Trainer.take_sums`.
            timing: timing of the calls since the last row.
        """
        config = self._config
        agents = seeds.split(sums, len(self._seeds))
        row = join_rows([summarise(agent, self._metrics) for agent in agents], self._seeds)
        steps = timing.updates * config.batch_size * len(self._seeds)
        row["train/steps_per_second"] = steps / timing.seconds
        row["train/learning_rate"] = float(self._hyper.learning_rate(update - 1, np))
        alarms = self._health.check(update, row)
        self._write(update, row | ({ROW_KEY: [alarm.name for alarm in alarms]} if alarms else {}))
        self._console.log(update, {name: x for name, x in row.items() if name != AGENTS})
        if (text := describe_agents(row, RETURN)) is not None:
            self._console.note("agents", f"return {text}")
        for alarm in alarms:
            self._console.warn(alarm.message)
            self._trackers.alarm(update, alarm.name, alarm.message)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Context of an evaluation; shows, the first time, that it is being compiled."""
        first, self._has_evaluated = not self._has_evaluated, True
        with self._console.waiting("compiling the evaluation") if first else nullcontext():
            yield

    def evaluation(
        self, update: int, results: Sequence[Mapping[str, float]], *, best: bool
    ) -> Evaluation:
        """Reports an evaluation.

        Args:
            update: number of updates so far.
            results: the results of each agent, all with the same names.
            best: whether it is the best so far.

        Returns:
            The evaluation for a checkpoint's facts: the results of a single agent; for many the
            means, and the results of each under `OF_AGENTS`.
        """
        prefixed = [{EVAL + name: value for name, value in each.items()} for each in results]
        row = join_rows(prefixed, self._seeds)
        self._write(update, row)
        means = {name: row[EVAL + name] for name in results[0]}
        shown = ", ".join(f"{name} {value:.3g}" for name, value in means.items())
        self._console.note("evaluation", f"update {update:,}: {shown}" + best * ", the best")
        return means if len(results) == 1 else means | {OF_AGENTS: [dict(each) for each in results]}

    def anomaly(self, seed: int, anomaly: Anomaly) -> None:
        """Warns of the first number that was not finite, with its place in the update."""
        config = self._config
        where = "before the first step of the optimizer"
        if anomaly.step is not None:
            steps = config.num_minibatches // config.gradient_accumulation_steps
            epoch, step = divmod(anomaly.step - 1, steps)
            where = f"epoch {epoch + 1}, minibatch {step + 1} of {steps}"
        whose = f"seed {seed}: " if len(self._seeds) > 1 else ""
        self._console.warn(f"{whose}not finite: {anomaly.tensor}; update {anomaly.update}, {where}")

    def _write(self, update: int, row: Mapping[str, Any]) -> None:
        timesteps = self._course.timesteps(update)
        self._trackers.log(update, timesteps, row)
        try:
            self._run.add_metrics({"update": update, "timesteps": timesteps, **row})
        except LostFolderError:
            raise
        except OSError as error:
            if not self._write_failed:
                self._write_failed = True
                self._console.warn(f"metrics.jsonl can't be written: {error.strerror}")
