"""A run read out for analysis: its metrics and evaluations as frames, and plots. Imports no JAX."""

import importlib
import typing
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.learning.reporting.alarms import ROW_KEY
from hackmatrix.learning.reporting.metrics import AGENTS, HIGH, LOW, SEED
from hackmatrix.learning.settings.config_file import Settings
from hackmatrix.research.comparison.curves import EVALUATED, ComparedRun, read_run
from hackmatrix.research.figures import COLOURS, Picture, label, line, panels, svg
from hackmatrix.runs.folder import STARTS, starts_in

FrameLibrary = Literal["pandas", "polars", "numpy"]
KINDS: tuple[FrameLibrary, ...] = typing.get_args(FrameLibrary)
Columns = dict[str, np.ndarray[Any, Any]]
Frame = Any  # of pandas or polars, or `Columns`

_INTEGER_COLUMNS = ("update", "timesteps", SEED)  # columns of whole numbers


class RunRecord(NamedTuple):
    """What a run's folder holds, apart from params and checkpoints.

    Frames have a row for each agent at each time, with the columns `update`, `timesteps` and `seed`
    (int64) and those of `docs/metrics.md` (float64, NaN where nothing was measured).
    """

    path: Path
    settings: Settings  # by name, as in `TrainConfig`; those that its file lacks are defaults
    metrics: Frame
    evaluations: Frame  # `eval/...`
    alarms: list[tuple[int, str]]  # update and name of each
    starts: list[dict[str, Any]]  # time, machine, versions and commit of each process
    columns: Columns  # of both frames, for `plot`

    def plot(self, *names: str) -> Picture:
        """Metrics against steps, which a notebook shows: a thin line for each agent, and the mean.

        Args:
            names: those of columns; the return in training unless given.

        Raises:
            UserError: there is no such metric, or matplotlib is missing.
        """
        names = names or ("train/mean_episode_return",)
        figure, all_axes = panels(self.path.name, len(names))
        for axes, name in zip(all_axes, names, strict=True):
            _draw(axes, self.columns, name)
        return svg(figure)


def run_record(path: Path, frame: FrameLibrary | None = None) -> RunRecord:
    """Reads a run.

    Args:
        path: its folder.
        frame: the library whose frames are made; unless given pandas, else polars, else NumPy
            arrays by name, whichever is installed.

    Raises:
        UserError: it is no run, has no metrics yet, or the library is not installed.
    """
    library = frame or next(name for name in KINDS if find_spec(name) is not None)
    if library not in KINDS or find_spec(library) is None:
        raise UserError(f"frame must be one of {', '.join(KINDS)} that is installed, got {library}")
    run = read_run(Path(path))
    rows = [each for row in run.rows for each in _of_agents(run, row)]
    trained = [_without(row, evaluated=True) for row in rows]
    evaluated = [_without(row, evaluated=False) for row in rows]
    starts = run.path / STARTS
    return RunRecord(
        path=run.path,
        settings=run.settings,
        metrics=_frame(_columns(trained), library),
        evaluations=_frame(_columns(evaluated), library),
        alarms=[(row["update"], name) for row in run.rows for name in row.get(ROW_KEY, [])],
        starts=starts_in(starts.read_bytes()) if starts.exists() else [],
        columns=_columns(rows),
    )


def _of_agents(run: ComparedRun, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of each agent: what is measured of it, and what is measured of all together."""
    agents = row.get(AGENTS) or [{SEED: run.settings["seed"]}]
    own = {name for agent in agents for name in agent}
    common = {
        name: value
        for name, value in row.items()
        if name not in own | {AGENTS, ROW_KEY} and not name.startswith((LOW, HIGH))
    }
    for agent in agents:
        yield {**common, **agent}


def _without(row: Mapping[str, Any], *, evaluated: bool) -> dict[str, Any]:
    """The row without its evaluations, or with nothing else."""
    return {
        name: value
        for name, value in row.items()
        if name in _INTEGER_COLUMNS or name.startswith(EVALUATED) != evaluated
    }


def _columns(rows: list[dict[str, Any]]) -> Columns:
    """Rows with any value as columns: where and whose, then the others."""
    rows = [row for row in rows if len(row) > len(_INTEGER_COLUMNS)]
    names = dict.fromkeys([*_INTEGER_COLUMNS, *(name for row in rows for name in row)])
    return {
        name: np.array([row[name] for row in rows], np.int64)
        if name in _INTEGER_COLUMNS
        else np.array([row.get(name) for row in rows], np.float64)  # None becomes NaN
        for name in names
    }


def _frame(columns: Columns, library: FrameLibrary) -> Frame:
    return columns if library == "numpy" else importlib.import_module(library).DataFrame(columns)


def _draw(axes: Any, columns: Columns, name: str) -> None:
    if name not in columns:
        there = ", ".join(sorted(set(columns) - set(_INTEGER_COLUMNS)))
        raise UserError(f"the run has no metric {name}; it has {there}")
    known = np.isfinite(columns[name])
    steps, seeds, values = (columns[each][known] for each in ("timesteps", SEED, name))
    for seed in np.unique(seeds):
        line(axes, steps[seeds == seed], values[seeds == seed], colour=COLOURS[0], is_thin=True)
    positions = np.unique(steps)
    means = [values[steps == position].mean() for position in positions]
    line(axes, positions, means, colour=COLOURS[0])
    label(axes, name, "steps")
