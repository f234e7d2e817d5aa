"""The cost of trackers in processor time, which varies less than the speed of runs."""

import importlib.util
import io
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.options import option
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.loop import train
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.learning.settings.train_options import TrainOptions
from hackmatrix.research.bench.options import Options
from hackmatrix.runs.metrics_file import Row, read_metrics
from hackmatrix.runs.trackers import TrackedRun, Trackers

_IDLE_SECONDS = 10.0
_OFFLINE = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}


@dataclass(frozen=True)
class TrackersOptions(Options):
    """The options of the command."""

    config: Path | None = option(None, "settings of a run, as for `hackmatrix train`")
    timesteps: int = option(1_000_000, "length of the run", at_least=1)
    rows: int = option(500, "rows of metrics that each tracker gets", at_least=1, at_most=1_000)
    repeats: int = option(3, "times that each of them gets the rows", at_least=1)


class Cost(NamedTuple):
    """Cost of one tracker in seconds of one core, over all its threads and processes."""

    once: float  # to start and to close
    row: float  # for a row of metrics
    blocked: float  # part of `row` during which the training loop is blocked
    idle: float  # per second without a row

    def share(self, rows_per_second: float, cores: int) -> float:
        """Share of the machine's processor time while a run logs `rows_per_second`."""
        return (self.row * rows_per_second + self.idle) / cores


class Costs(NamedTuple):
    """Cost of each tracker, and the run that produced the rows."""

    config: TrainConfig
    seconds: float  # of a run's updates, without trackers
    rows: int  # of metrics in that run
    costs: dict[str, Cost]  # by tracker

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        about = machine.machine()
        rate = self.rows / self.seconds
        shares = {name: cost.share(rate, about["cores"]) for name, cost in self.costs.items()}
        return {
            "env": self.config.environment.env,
            "timesteps": self.config.ppo.course.num_updates * self.config.ppo.batch_size,
            "seconds": self.seconds,
            "rows": self.rows,
            "trackers": {n: c._asdict() | {"share": shares[n]} for n, c in self.costs.items()},
            **about,
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        it = self.as_dict()
        lines = [
            f"{it['env']}, {it['timesteps']:,} steps in {it['seconds']:.1f} s, {it['rows']} rows "
            f"of metrics; time of one core of {it['cores']}:",
            f"{'':<14}{'once':>9}{'a row':>12}{'(the loop':>12}{'idle':>9}{'of the machine':>16}",
        ]
        for name, cost in it["trackers"].items():
            blocked = f"({1e3 * cost['blocked']:.3f} ms)"
            lines.append(
                f"{name:<14}{cost['once']:>7.2f} s{1e3 * cost['row']:>9.2f} ms{blocked:>12}"
                f"{cost['idle']:>9.2%}{cost['share']:>16.2%}"
            )
        return "\n".join([*lines, machine.line(it, it["versions"])])


def measure(options: TrackersOptions) -> Costs:
    """Makes a run without trackers and logs its rows, repeated, to each of them.

    Nothing is sent anywhere.
    """
    in_file = {} if options.config is None else read_config(options.config)
    settings, _ = resolve({"total_timesteps": options.timesteps}, in_file)
    settings = settings.but(tensorboard=False, wandb=False)
    seconds, lines = _run(settings)
    rows = [lines[i % len(lines)] for i in range(options.rows)]
    ways = {"TensorBoard": settings.but(tensorboard=True)}
    if importlib.util.find_spec("wandb") is not None:
        ways["W&B, offline"] = settings.but(wandb=True)
    with mock.patch.dict(os.environ, _OFFLINE):
        for way in ways.values():  # the first use imports and caches
            _cost_of_rows(way, rows[:1])
        costs = {name: _cost(way, rows, options.repeats) for name, way in ways.items()}
    return Costs(settings, seconds, len(lines), costs)


def _cost(settings: TrainConfig, rows: list[Row], repeats: int) -> Cost:
    once = statistics.median(_cost_of_rows(settings, [])[0] for _ in range(repeats))
    all_rows, waited = zip(*(_cost_of_rows(settings, rows) for _ in range(repeats)), strict=True)
    idle, _ = _cost_of_rows(settings, [], _IDLE_SECONDS)
    return Cost(
        once=once,
        row=max(0.0, statistics.median(all_rows) - once) / len(rows),
        blocked=statistics.median(waited) / len(rows),
        idle=max(0.0, idle - once) / _IDLE_SECONDS,
    )


def _cost_of_rows(settings: TrainConfig, rows: list[Row], idle: float = 0.0) -> tuple[float, float]:
    """Core seconds of a tracker for some rows, and seconds for which its caller is blocked."""
    with tempfile.TemporaryDirectory() as folder:
        before = _core_seconds()
        run = TrackedRun(Path(folder), settings.as_dict())
        with Trackers.open(run, lambda _: None) as trackers:
            waited = _seconds(lambda: _log_all(trackers, settings, rows))
            time.sleep(idle)
        if settings.report.wandb:
            import wandb

            wandb.teardown()  # ends its process: only ended processes are counted
        return _core_seconds() - before, waited


def _log_all(trackers: Trackers, settings: TrainConfig, rows: list[Row]) -> None:
    for update, row in enumerate(rows, 1):
        trackers.log(update, update * settings.ppo.batch_size, row)


def _run(settings: TrainConfig) -> tuple[float, list[Row]]:
    """Seconds of a run's updates, and its rows of metrics."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings.but(checkpoint_dir=Path(folder))
        with _Clock(io.StringIO()) as clock:
            outcome = train(config, TrainOptions(run_name="run"), clock)
        return clock.ended - clock.began, list(read_metrics(outcome.run))


class _Clock(Console):
    """A console that measures the time from a run's first to its last update."""

    began = ended = 0.0

    def begin(self, *args: Any, **kwargs: Any) -> None:
        self.began = time.perf_counter()
        super().begin(*args, **kwargs)

    def advance(self, update: int) -> None:
        self.ended = time.perf_counter()
        super().advance(update)


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _core_seconds() -> float:
    """Processor time of this process and of its child processes that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "trackers",
        measure,
        TrackersOptions,
        argv,
        purpose="Measures the processor time that trackers take from a run.",
        example="--config quick\n      processor time for the rows of such a run",
    )


if __name__ == "__main__":
    sys.exit(main())
