"""Where a run stands: how far it is, whether it goes on, for how long, how healthy it is."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from hackmatrix.environments.interface.metric import Severity
from hackmatrix.learning.reporting.alarms import SPEED
from hackmatrix.ui.monitor.curves import FloatArray, MetricColumns
from hackmatrix.ui.monitor.metric_groups import health_of, metric_of, worst
from hackmatrix.ui.monitor.run import MonitoredRun

STEPS = "timesteps"
AXES = ("steps", "updates", "hours")
_PATIENCE = 3.0  # rows that may be late before a run is called silent
_LEAST_PATIENCE = 30.0  # seconds
_LEAST_SPEED = 1e-9  # steps/s, by which one can divide


class Condition(Enum):
    """Whether a run goes on, as far as its files tell."""

    WAITING = "no rows yet"
    RUNNING = "running"
    SILENT = "silent"
    GONE = "its metrics are gone"
    FINISHED = "finished"


class RunProgress(NamedTuple):
    """A run at its last row."""

    condition: Condition
    update: int
    steps: int
    total: int  # steps; 0 if not known
    seconds_left: float | None  # at the speed of the last rows; None if it is not known
    silent_seconds: float | None  # since the last row
    health: Severity | None


def positions(run: MonitoredRun, axis: str) -> FloatArray:
    """Where the rows of the run's table lie on an axis, float64[rows], rising.

    Steps are transitions of each agent. Hours are of training alone, from its speed; rows without
    one are as fast as the others around them.
    """
    updates = np.array(run.table.updates, np.float64)
    if axis == "updates":
        return updates
    steps = _interpolate_missing(updates, run.table.column(STEPS), updates)
    if axis == "steps":
        return steps
    speed = _interpolate_missing(updates, run.table.column(SPEED), np.full(len(updates), np.inf))
    made = np.diff(steps, prepend=0.0) * run.num_seeds
    return np.cumsum(made / np.maximum(speed, _LEAST_SPEED)) / 3600


def positions_of(run: MonitoredRun, table: MetricColumns, axis: str) -> FloatArray:
    """Where the rows of one of the run's tables lie on an axis."""
    x = positions(run, axis)
    if table is run.table:
        return x
    return np.interp(np.array(table.updates), np.array(run.table.updates), x)


def axis_positions(run: MonitoredRun, updates: Sequence[int]) -> list[dict[str, float]]:
    """Where some updates lie on each axis."""
    rows = np.array(run.table.updates, np.float64)
    if not len(rows):
        return [dict.fromkeys(AXES, 0.0) for _ in updates]
    found = {axis: np.interp(updates, rows, positions(run, axis)) for axis in AXES}
    return [{axis: float(f"{found[axis][i]:.9g}") for axis in AXES} for i in range(len(updates))]


def progress_of(run: MonitoredRun) -> RunProgress:
    """The condition and progress of a run."""
    silent = run.silent_seconds()
    if not len(run.table):
        return RunProgress(Condition.WAITING, 0, 0, run.total, None, silent, None)
    steps = int(positions(run, "steps")[-1])
    speed = float(np.median(_speeds(run)[-10:])) if len(_speeds(run)) else 0.0
    left = max(0, run.total - steps) * run.num_seeds / speed if run.total and speed else None
    if silent is None:
        condition = Condition.GONE
    elif run.total and steps >= run.total:
        condition = Condition.FINISHED
    else:
        late = silent > _LEAST_PATIENCE + _PATIENCE * _row_seconds(run, speed)
        condition = Condition.SILENT if late else Condition.RUNNING
    return RunProgress(
        condition, run.table.updates[-1], steps, run.total, left, silent, health(run)
    )


def health(run: MonitoredRun) -> Severity | None:
    """The worst that any metric's last value says; of many agents, of their worst one."""
    return worst(
        health_of(metric_of(name), last[1])
        for table in (run.table, *run.agents.values())
        for name in table
        if (last := table.last(name)) is not None
    )


def _speeds(run: MonitoredRun) -> FloatArray:
    speeds = run.table.column(SPEED)
    return speeds[np.isfinite(speeds) & (speeds > _LEAST_SPEED)]


def _row_seconds(run: MonitoredRun, speed: float) -> float:
    """Seconds that a row of metrics takes at a speed."""
    steps = positions(run, "steps")
    return float(np.diff(steps, prepend=0.0)[-10:].max()) * run.num_seeds / speed if speed else 0.0


def _interpolate_missing(x: FloatArray, column: FloatArray, otherwise: FloatArray) -> FloatArray:
    """A column with what is missing interpolated; `otherwise` if all of it is missing."""
    present = np.isfinite(column)
    return np.interp(x, x[present], column[present]) if present.any() else otherwise
