"""The monitor's answers as JSON objects: an overview of the runs, and the curves of metrics."""

import shlex
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from hackmatrix.environments.interface.metric import Metric
from hackmatrix.ui.monitor.curves import (
    NEWEST,
    FloatArray,
    MetricColumns,
    PlottedCurve,
    band,
    downsample,
    smooth_column,
    visible_range,
    within,
    without_spikes,
)
from hackmatrix.ui.monitor.metric_groups import health_of, in_groups, is_fraction, label_of, worst
from hackmatrix.ui.monitor.run import MonitoredRun, key_of
from hackmatrix.ui.monitor.runs import RunGroup, Runs
from hackmatrix.ui.monitor.status import (
    AXES,
    STEPS,
    axis_positions,
    positions,
    positions_of,
    progress_of,
)

_MOST_ALARMS = 100  # of a run, the newest
_MOST_CHECKPOINTS = 40  # of a run, the newest
_LONGEST_SETTING = 200  # characters
_MOST_BROKEN = 20  # places of a curve where the value was not finite, the newest

Answer = dict[str, Any]


class Wanted(NamedTuple):
    """Which curves a page wants."""

    metrics: tuple[str, ...]
    axis: str = "steps"
    rows: float = 1  # that smoothing is over
    low: float | None = None  # the part of the axis that is shown
    high: float | None = None
    pixels: int = 400


def overview(runs: Runs) -> Answer:
    """All but the curves: runs and their groups, metrics, alarms, checkpoints."""
    groups = runs.groups()
    in_turn = [(i, run) for i, group in enumerate(groups) for run in group.runs]
    return {
        "version": runs.version,
        "problem": runs.problem,
        "notice": runs.notice,
        "unread": sum(run.unread for run in runs.runs),
        "groups": [_group(group) for group in groups],
        "settings": _settings(groups),
        "metrics": [
            {"title": title, "metrics": [_metric(metric, groups) for metric in metrics]}
            for title, metrics in in_groups(_names(runs.runs)).items()
        ],
        "alarms": [alarm for i, run in in_turn for alarm in _alarms(i, run)],
        "checkpoints": [saved for i, run in in_turn for saved in _checkpoints(i, run)],
        "pictures": [_picture(*named) for named in runs.pictures().items()],
        "ends": {axis: max((_end(run, axis) for run in runs.runs), default=0.0) for axis in AXES},
    }


def _group(group: RunGroup) -> Answer:
    environment = str(group.runs[0].config.get("env") or "")[:_LONGEST_SETTING]
    runs = [_run(run) for run in group.runs]
    return {"name": group.name, "environment": environment, "runs": runs}


def last_values(runs: Runs) -> Answer:
    """Where each run stands, for programs: its last values, null if not finite, and its alarms."""
    return {
        "problem": runs.problem,
        "notice": runs.notice,
        "runs": [
            _run(run)
            | {"metrics": {name: _last(run.table, name) for name in sorted({*run.table} - {STEPS})}}
            | {"alarms": [{**a._asdict(), "severity": a.severity.value} for a in run.alarms]}
            for run in runs.runs
        ],
    }


def _last(table: MetricColumns, name: str) -> float | None:
    last = table.last(name)
    return None if last is None else _short(last[1])


def _picture(name: str, path: Path) -> Answer:
    """A plot, whose address changes when its file does."""
    return {"name": name, "address": f"picture/{quote(name)}?{path.stat().st_mtime_ns}"}


def _names(runs: Iterable[MonitoredRun]) -> set[str]:
    tables = (table for run in runs for table in (run.table, *run.agents.values()))
    return {name for table in tables for name in table} - {STEPS}


def _end(run: MonitoredRun, axis: str) -> float:
    return float(positions(run, axis)[-1]) if len(run.table) else 0.0


def _run(run: MonitoredRun) -> Answer:
    at = progress_of(run)
    return {
        "name": run.name,
        "path": str(run.path),
        "seeds": run.num_seeds,
        **at._asdict(),
        "condition": at.condition.value,
        "health": at.health.value if at.health else None,
    }


def _metric(metric: Metric, groups: Sequence[RunGroup]) -> Answer:
    limits = [
        {"severity": each.severity.value, "below": each.below, "above": each.above}
        for each in metric.limits
    ]
    lasts = [_lasts(metric, group) for group in groups]
    severities = [worst(health_of(metric, value) for value in values) for values in lasts]
    return {
        "name": metric.name,
        "label": label_of(metric),
        "meaning": f"{metric.meaning} ({metric.over.value})" if metric.meaning else metric.name,
        "fraction": is_fraction(metric),
        "limits": limits,
        "last": [_short(float(np.mean(values))) if values else None for values in lasts],
        "health": [each.value if each else None for each in severities],
    }


def _lasts(metric: Metric, group: RunGroup) -> list[float]:
    """The last values of a metric, of all agents of a group."""
    tables = (table for run in group.runs for table in run.tables(metric.name).values())
    return [last[1] for table in tables if (last := table.last(metric.name)) is not None]


def _alarms(group: int, run: MonitoredRun) -> list[Answer]:
    alarms = run.alarms[-_MOST_ALARMS:]
    at = axis_positions(run, [alarm.update for alarm in alarms])
    return [
        {**alarm._asdict(), "severity": alarm.severity.value, "at": x, "group": group}
        | {"run": run.name}
        for alarm, x in zip(alarms, at, strict=True)
    ]


def _settings(groups: Sequence[RunGroup]) -> Answer:
    """The settings that differ between groups: their `names`, and a row of `values` a group."""
    settings = [group.runs[0].settings for group in groups]
    names = list(dict.fromkeys(name for each in settings for name in each))
    differ = [n for n in names if len({repr(each.get(n)) for each in settings}) > 1]
    return {
        "names": differ,
        "values": [[_format_setting(each.get(n)) for n in differ] for each in settings],
    }


def _format_setting(setting: Any) -> str:
    if setting is None:
        return ""
    return f"{setting:.6g}" if isinstance(setting, float) else str(setting)[:_LONGEST_SETTING]


def _checkpoints(group: int, run: MonitoredRun) -> list[Answer]:
    saved = run.saved_params()[:_MOST_CHECKPOINTS]
    at = axis_positions(run, [each.update for each in saved])
    folders = Counter(each.path.parent for each in saved if each.playable)
    return [
        {
            "group": group,
            "run": run.name,
            "update": each.update,
            "seed": each.seed,
            "label": each.label,
            "score": _score(run.agents.get(each.seed or 0, run.table), each.update),
            "command": f"hackmatrix watch {shlex.quote(str(each.path))}" if each.playable else None,
            "page": f"played/{key_of(each.path)}/" if each.playable else None,
            "grown": _growth_url(each.path.parent) if folders[each.path.parent] > 1 else None,
            "at": x,
        }
        for each, x in zip(saved, at, strict=True)
    ]


def _growth_url(folder: Path) -> str:
    """The address of what the checkpoints in a folder play side by side."""
    return f"grown.html?run={key_of(folder)}"


def _score(table: MetricColumns, update: int) -> float | None:
    """The mean return of the evaluation at an update."""
    row = bisect_left(table.updates, update)
    if row == len(table) or table.updates[row] != update:
        return None
    return _short(float(table.column("eval/mean_return")[row]))


def curves(groups: Sequence[RunGroup], wanted: Wanted) -> Answer:
    """For each metric what to draw of each group; null of groups that have nothing of it."""
    return {name: [_of_group(group, name, wanted) for group in groups] for name in wanted.metrics}


class _Drawn(NamedTuple):
    """The curve of one agent."""

    run: str
    seed: int | None
    curve: PlottedCurve
    calm: FloatArray  # its y without spikes
    broken: list[float]  # where the value was not finite


def _of_group(group: RunGroup, name: str, wanted: Wanted) -> Answer | None:
    drawn = [
        one
        for run in group.runs
        for seed, table in run.tables(name).items()
        if (one := _draw(run, seed, table, name, wanted)) is not None
    ]
    if not drawn:
        return None
    everything = np.concatenate([one.curve.y for one in drawn])
    ranges = [visible_range(one.curve.y, one.calm) for one in drawn]
    answer: Answer = {
        "lines": [
            {"run": one.run, "seed": one.seed, **_points(one.curve, wanted.pixels)} for one in drawn
        ],
        "range": [_short(min(low for low, _ in ranges)), _short(max(high for _, high in ranges))],
        "full": [_short(float(everything.min())), _short(float(everything.max()))],
        "broken": sorted({x for one in drawn for x in one.broken})[-_MOST_BROKEN:],
    }
    if len(drawn) > 1 and (mean := band([one.curve for one in drawn])) is not None:
        columns = {"y": mean.mean, "low": mean.low, "high": mean.high}
        kept = downsample(mean.x, list(columns.values()), wanted.pixels)
        answer["mean"] = {"x": _rounded(mean.x[kept])}
        answer["mean"] |= {key: _rounded(column[kept]) for key, column in columns.items()}
    return answer


def _draw(
    run: MonitoredRun, seed: int | None, table: MetricColumns, name: str, wanted: Wanted
) -> _Drawn | None:
    column, x = table.column(name), positions_of(run, table, wanted.axis)
    finite = np.isfinite(column)
    if not finite.any():
        return None
    calm = column.copy()
    calm[finite] = without_spikes(column[finite])
    part = within(x[finite], wanted.low, wanted.high)
    drawn, calm = (smooth_column(each, wanted.rows)[finite] for each in (column, calm))
    calm[-NEWEST:] = drawn[-NEWEST:]  # smoothing leads spikes before them into them
    y, calm = drawn[part], calm[part]
    if not len(y):
        return None
    broken = [_short(float(place)) or 0.0 for place in x[np.isinf(column)][-_MOST_BROKEN:]]
    return _Drawn(run.name, seed, PlottedCurve(x[finite][part], y), calm, broken)


def _points(curve: PlottedCurve, pixels: int) -> Answer:
    kept = downsample(curve.x, [curve.y], pixels)
    return {"x": _rounded(curve.x[kept]), "y": _rounded(curve.y[kept])}


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.7g}") for value in values.tolist()]


def _short(value: float) -> float | None:
    """A value with few digits; None if it is not finite."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
