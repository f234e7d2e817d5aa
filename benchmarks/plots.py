"""Plots of the figures, with matplotlib (the extra `bench`)."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hackmatrix.core.extras import need

_INK, _OURS, _OTHERS = "#333333", "#2b6cb0", "#a0aec0"
_SEVERAL = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5")  # of variations, the recipe first


def require_matplotlib() -> None:
    """Raises `UserError` if matplotlib is missing, before a long measurement."""
    need("matplotlib")


def line_plot(
    path: Path,
    xs: Sequence[float],
    ys: Sequence[float],
    spread: Sequence[tuple[float, float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
) -> None:
    """A line of medians with the y axis from 0, and error bars from minimum to maximum."""
    figure, axes = _figure(title)
    errors = [[y - low for y, (low, _) in zip(ys, spread, strict=True)]]
    errors += [[high - y for y, (_, high) in zip(ys, spread, strict=True)]]
    axes.errorbar(xs, ys, yerr=errors, color=_OURS, marker="o", markersize=4, capsize=2)
    if log_x:
        axes.set_xscale("log", base=2)
        axes.set_xticks(xs, [f"{x:,.0f}" for x in xs], rotation=45, ha="right")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.grid(axis="y", alpha=0.3)
    _finish(figure, axes, path, x_label, y_label)


def lines_plot(
    path: Path,
    lines: Mapping[str, Sequence[tuple[float, float, float, float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
) -> None:
    """A line for each name, of points (x, y, low, high), over a logarithmic axis that has 0."""
    figure, axes = _figure(title)
    for (name, points), color in zip(lines.items(), (_OURS, _OTHERS), strict=False):
        xs, ys, lows, highs = (list(each) for each in zip(*points, strict=True))
        errors = [
            [y - low for y, low in zip(ys, lows, strict=True)],
            [high - y for y, high in zip(ys, highs, strict=True)],
        ]
        axes.errorbar(
            xs, ys, yerr=errors, color=color, marker="o", markersize=4, capsize=2, label=name
        )
    ticks = sorted({x for points in lines.values() for x, *_ in points})
    axes.set_xscale("symlog", base=2, linthresh=4)
    # A label would cover the next one if that is nearer than a third.
    shown = [f"{x:,.0f}" if 3 * y > 4 * x else "" for x, y in pairwise([*ticks, math.inf])]
    axes.set_xticks(ticks, shown)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
    _finish(figure, axes, path, x_label, y_label)


def bar_plot(
    path: Path, names: Sequence[str], values: Sequence[float], ours: Sequence[bool], *, title: str
) -> None:
    """A horizontal bar for each value, on a logarithmic axis."""
    figure, axes = _figure(title, height=0.6 + 0.42 * len(names))
    colors = [_OURS if mine else _OTHERS for mine in ours]
    bars = axes.barh(names, values, color=colors)
    axes.bar_label(bars, [f" {value:,.0f}" for value in values], color=_INK, fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 3, max(values) * 6)  # room for the labels
    axes.invert_yaxis()
    _finish(figure, axes, path, "environment steps per second", "")


def curves_plot(
    path: Path,
    curves: Mapping[str, Mapping[str, Any]],
    published: Mapping[str, Sequence[tuple[str, float]]],
    *,
    title: str,
) -> None:
    """Learning curves, one panel each: agents as thin lines, their mean, and published results.

    Args:
        path: of the file.
        curves: by name, each with `timesteps`, `mean`, `low` and `high`, and `agents`, a list of
            the agents' values at each time.
        published: results by name, each shown as a horizontal line.
        title: title of the plot.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=_INK)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (name, curve) in zip(panels, curves.items(), strict=True):
        steps = curve["timesteps"]
        for agent in zip(*curve["agents"], strict=True):
            axes.plot(steps, agent, color=_OURS, alpha=0.2, linewidth=0.7)
        axes.fill_between(steps, curve["low"], curve["high"], color=_OURS, alpha=0.2, linewidth=0)
        axes.plot(steps, curve["mean"], color=_OURS, label="hackmatrix")
        for (who, value), dashes in zip(published[name], ("--", ":"), strict=True):
            axes.axhline(value, color=_INK, linestyle=dashes, linewidth=1, label=f"{who} {value:g}")
        axes.set_title(name, loc="left", fontsize=9, color=_INK)
        axes.spines[["top", "right"]].set_visible(False)
        shown = [*curve["mean"], *(value for _, value in published[name])]
        low, high = min(shown), max(shown)
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        axes.xaxis.set_major_formatter(
            lambda x, _: f"{x / 1e6:g}M" if x >= 1e6 else f"{x / 1e3:g}k"
        )
        axes.legend(loc="lower right", fontsize=7, frameon=False)
        axes.set_xlabel("steps of an agent", fontsize=8)
        axes.tick_params(labelsize=8)
    _save(figure, path)


def panels_plot(
    path: Path,
    runs: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    figures: Mapping[str, str],
    *,
    title: str,
) -> None:
    """A panel for each figure, with a line for each run.

    Args:
        path: of the file.
        runs: by name, and for each figure the timesteps and values.
        figures: by their name in `runs`, their names for people.
        title: title of the plot.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=_INK)
    panels = figure.subplots(1, len(figures), squeeze=False)[0]
    for axes, (name, words) in zip(panels, figures.items(), strict=True):
        for run in runs.values():
            steps, values = zip(*run[name], strict=True)
            axes.plot([x / 1e6 for x in steps], values, color=_OURS, alpha=0.8, linewidth=1)
        axes.set_title(words, loc="left", fontsize=9, color=_INK)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("million steps", fontsize=8)
        axes.tick_params(labelsize=8)
    _save(figure, path)


def groups_plot(
    path: Path, groups: Mapping[str, Mapping[str, Mapping[str, Any]]], *, title: str
) -> None:
    """A panel for each group of variations, with a line of means and a band for each of them.

    Args:
        path: of the file.
        groups: by name, the variations by name, each with `timesteps`, `mean`, `low` and `high`.
        title: title of the plot.
    """
    from matplotlib.figure import Figure

    columns = 4
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(10.5, 2.7 * rows), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=_INK)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flat
    for axes, (group, variations) in zip(panels, groups.items(), strict=False):
        for (name, curve), color in zip(variations.items(), _SEVERAL, strict=False):
            steps = [x / 1e6 for x in curve["timesteps"]]
            axes.plot(steps, curve["mean"], color=color, linewidth=1, label=name)
            axes.fill_between(steps, curve["low"], curve["high"], color=color, alpha=0.15, lw=0)
        axes.set_title(group, loc="left", fontsize=9, color=_INK)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower right", fontsize=7, frameon=False)
        axes.set_ylim(1, 8)
        axes.tick_params(labelsize=8)
    for axes in list(figure.axes)[len(groups) :]:
        axes.set_visible(False)
    for axes in list(figure.axes)[: len(groups)][-columns:]:
        axes.set_xlabel("million steps", fontsize=8)
    _save(figure, path)


def _figure(title: str, height: float = 3.4) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=10, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _finish(figure: Any, axes: Any, path: Path, x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    from matplotlib import rc_context

    # Text stays text, and equal plots give equal files.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hackmatrix"}):
        figure.savefig(path, metadata={"Date": None})
