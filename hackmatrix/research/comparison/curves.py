"""A metric of each agent of a run, against its steps and against its seconds of training."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.learning.reporting.alarms import RETURN, SPEED
from hackmatrix.learning.reporting.metrics import AGENTS, SEED
from hackmatrix.learning.settings.config import OPTIONS
from hackmatrix.learning.settings.config_file import (
    Settings,
    read_config,
    with_num_minibatches,
)
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.metrics_file import read_metrics
from hackmatrix.runs.names import is_checkpoint_name
from hackmatrix.runs.other_names import run_of_name

EVALUATED = "eval/"  # before the names of metrics of evaluations

Values = NDArray[np.float64]


class NoMetricError(UserError):
    """A run has no metric of this name."""


class ComparedRun(NamedTuple):
    """A run's settings and its rows of metrics."""

    path: Path
    settings: Settings
    rows: list[dict[str, Any]]

    @property
    def environment(self) -> str:
        """The environment that it was trained on."""
        tasks = self.settings.get("task_list")
        return tasks.environment if tasks else str(self.settings["env"])

    def has(self, metric: str) -> bool:
        """Whether a row has a value of this metric."""
        return any(isinstance(row.get(metric), int | float) for row in self.rows)


class LearningCurve(NamedTuple):
    """One agent's values of a metric, in the order of training."""

    run: Path
    environment: str
    seed: int
    games: int  # seed of the games of its evaluations
    steps: Values  # [n] actions of the agent
    seconds: Values  # [n] seconds of training, without compiling, evaluating and saving
    values: Values  # [n]

    def at(self, positions: Values, *, seconds: bool) -> Values:
        """The values at some steps or seconds, between two rows on the straight line."""
        return np.interp(positions, self.seconds if seconds else self.steps, self.values)


def read_run(path: Path) -> ComparedRun:
    """Reads a run's settings and metrics. Settings that its file lacks have their defaults.

    Args:
        path: its folder, or another trainer's name of one of its checkpoints.

    Raises:
        UserError: the folder is no run, or has no metrics yet.
    """
    if is_checkpoint_name(path.name):
        path = run_of_name(path)
    if not (path / CONFIG).is_file():
        raise UserError(f"{path}: is no folder of a run, it holds no {CONFIG}")
    rows = [row for row in read_metrics(path) if type(row.get("timesteps")) is int]
    if not rows:
        raise UserError(f"{path}: has no metrics yet")
    defaults = {name: option.default for name, option in OPTIONS.items()}
    return ComparedRun(path, defaults | with_num_minibatches(read_config(path / CONFIG)), rows)


def shared_metric(runs: list[ComparedRun]) -> str:
    """The return in evaluations if all runs have it, else that of the games trained on."""
    evaluated = f"{EVALUATED}mean_return"
    return evaluated if all(run.has(evaluated) for run in runs) else RETURN


def curves_of(run: ComparedRun, metric: str) -> list[LearningCurve]:
    """The curve of each agent of a run. Rows without a finite value are left out.

    An agent's seconds are its share of those of the run: of many agents that one program trains,
    each has an equal part.

    Raises:
        NoMetricError: the run has no such metric.
        UserError: one of its agents has no values of it.
    """
    if not run.has(metric):
        names = {name for row in run.rows for name, x in row.items() if isinstance(x, float)}
        raise NoMetricError(
            f"{run.path}: has no metric {metric}; it has {', '.join(sorted(names))}"
        )
    seconds = _seconds(run.rows)
    points_by_seed: dict[int, list[tuple[int, float, float]]] = {}
    for row in run.rows:
        at = float(row["timesteps"])
        for seed, value in _of_agents(run, row, metric):
            points = points_by_seed.setdefault(seed, [])
            if math.isfinite(value):
                points.append((row["timesteps"], seconds(at), value))
    first = int(run.settings["seed"])
    curves = []
    for seed, points in sorted(points_by_seed.items()):
        if not points:  # to leave it out would favour its group
            raise UserError(f"{run.path}: seed {seed} has no finite value of {metric}")
        steps, spent, values = (np.array(column, float) for column in zip(*points, strict=True))
        curves.append(LearningCurve(run.path, run.environment, seed, first, steps, spent, values))
    return curves


def _of_agents(run: ComparedRun, row: Mapping[str, Any], metric: str) -> list[tuple[int, float]]:
    """Seed and value of each agent in a row of the metric; NaN where there is none."""
    if metric not in row:
        return []
    alone = {SEED: run.settings["seed"], metric: row[metric]}
    agents = row.get(AGENTS) or [alone]
    values = [(int(agent[SEED]), agent.get(metric)) for agent in agents]
    return [(seed, math.nan if x is None else float(x)) for seed, x in values]


def _seconds(rows: list[dict[str, Any]]) -> Callable[[float], float]:
    """A function from steps of an agent to its seconds, by the speeds in the rows."""
    steps, seconds = [0.0], [0.0]
    speed = math.nan
    for row in rows:
        if row.get(SPEED):
            speed = float(row[SPEED])
            seconds.append(seconds[-1] + (row["timesteps"] - steps[-1]) / speed)
            steps.append(float(row["timesteps"]))

    def seconds_at(step: float) -> float:
        beyond = max(0.0, step - steps[-1])
        return float(np.interp(step, steps, seconds)) + (beyond / speed if beyond else 0.0)

    return seconds_at


def settings_key(run: ComparedRun, left_out: frozenset[str]) -> str:
    """A run's settings, without some, as a text that is equal for equal settings."""
    kept = {name: value for name, value in run.settings.items() if name not in left_out}
    return json.dumps(kept, sort_keys=True, default=str)
