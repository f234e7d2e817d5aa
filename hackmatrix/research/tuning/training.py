"""A training as a process of its own, and what its metrics say while it runs."""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.files import open_no_link, write_atomically
from hackmatrix.core.processes import python_module
from hackmatrix.learning.reporting.alarms import ROW_KEY, SPEED
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config
from hackmatrix.research.comparison.curves import curves_of, read_run
from hackmatrix.runs.exports import newest_export
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.metrics_file import read_metrics
from hackmatrix.runs.params import FINAL, agent_folders

COMMAND = python_module("hackmatrix", "train")
GRACE = 30.0  # seconds to end after SIGTERM
TRIES = 3  # of a training that a signal ends
SIGNALLED = 128  # plus the signal's number: the exit code of a command that a signal has ended
_LAST = 0.9  # share of the steps after which values count as those of the end


class UnderWay(Protocol):
    """A training under way."""

    @property
    def returncode(self) -> int | None:
        """The exit code once `poll` has returned it."""

    def poll(self) -> int | None:
        """The exit code; None while it trains."""


Start = Callable[[TrainConfig, Path], AbstractContextManager[UnderWay]]


class Moment(NamedTuple):
    """A run at one of its rows of metrics."""

    share: float  # of its steps
    seconds: float  # of training, an agent's part
    value: float  # of the metric, mean over its agents


class TrialResult(NamedTuple):
    """A run that has ended."""

    scores: NDArray[np.float64]  # of each agent: mean of the metric over the last tenth of the run
    seconds: float  # of training, an agent's part
    alarms: set[str]  # names of those that it raised


@contextlib.contextmanager
def training(config: TrainConfig, run: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Trains in a process, which is ended with the context; a run that was begun goes on.

    What it prints is in `{run}.log`.
    """
    words = arguments(config, run)
    with open(run.with_suffix(".log"), "ab", opener=open_no_link) as log:
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl+C ends it by way of the search
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def arguments(config: TrainConfig, run: Path) -> list[str]:
    """The arguments of `hackmatrix train` that begin a run, or go on with it."""
    run.parent.mkdir(parents=True, exist_ok=True)
    if (run / CONFIG).exists():
        return ["--resume", str(run), *config.code_flags]
    settings = run.with_suffix(".yaml")
    write_atomically(settings, dump_config(config).encode())
    return ["--config", str(settings), "--output-dir", str(run), *config.code_flags]


def is_finished(run: Path) -> bool:
    """Whether a run was trained to its end."""
    folders = agent_folders(run) or [run]
    return newest_export(run) is not None and all(
        (folder / f"{FINAL}.npz").exists() for folder in folders
    )


def was_killed(code: int | None) -> bool:
    """Whether an exit code is that of a process which a signal has ended."""
    return code is not None and (code < 0 or code > SIGNALLED)


def cause_of(code: int | None, run: Path) -> str:
    """The cause of a run's failure: the signal that ended its process, or its last line."""
    if code is None or not was_killed(code):
        return last_words(run)
    number = -code if code < 0 else code - SIGNALLED
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def last_words(run: Path) -> str:
    """The last line that a run printed."""
    path = run.with_suffix(".log")
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:200] if said else "it printed nothing"


def moments(run: Path, metric: str, total_timesteps: int) -> list[Moment]:
    """The rows of a run so far that have a value of the metric."""
    result: list[Moment] = []
    seconds, before = 0.0, 0
    for row in read_metrics(run):
        if row.get(SPEED):
            seconds += (row["timesteps"] - before) / row[SPEED]
            before = row["timesteps"]
        value: Any = row.get(metric)
        if value is not None:
            result.append(Moment(row["timesteps"] / total_timesteps, seconds, float(value)))
    return result


def result_of(run: Path, metric: str) -> TrialResult:
    """The result of a run that has ended, or was stopped.

    Raises:
        NoMetricError: it has no such metric.
        UserError: it has no values of it.
    """
    read = read_run(run)
    curves = curves_of(read, metric)
    last = [curve.values[curve.steps >= _LAST * curve.steps[-1]] for curve in curves]
    alarms = {name for row in read.rows for name in row.get(ROW_KEY, [])}
    return TrialResult(
        scores=np.array([values.mean() for values in last]),
        seconds=float(np.mean([curve.seconds[-1] for curve in curves])),
        alarms=alarms,
    )
