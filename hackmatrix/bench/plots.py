"""Plots of figures, with matplotlib (the extra `bench`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hackmatrix.errors import UserError

_INK, _OURS, _OTHERS = "#333333", "#2b6cb0", "#a0aec0"


def require_matplotlib() -> None:
    """Raises `UserError` where there is none, before anything is measured in vain."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError("plots need matplotlib: pip install 'hackmatrix[bench]'") from None


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
    """Medians as a line from 0 up, with a bar from the least to the most."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    from matplotlib import rc_context

    # Text as text, and equal plots are equal files.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hackmatrix"}):
        figure.savefig(path, metadata={"Date": None})
