"""Figures as SVG files that stand alone, drawn by matplotlib (the extra `plots`)."""

import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from hackmatrix.core.imports import need

COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#718096", "#975a16", "#0987a0")
ROW_HEIGHT = 0.25  # inches, of a panel that has a name for each row

Axes = Any  # of matplotlib, which carries no types that mypy follows
Figure = Any


class Picture(str):
    """The text of an SVG file; a notebook shows the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def panels(
    title: str, count: int = 1, *, height: float = 3.0, columns: int | None = None, **settings: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, or in as many rows as it takes.

    Args:
        title: of the figure.
        count: number of panels.
        height: of a panel, in inches.
        columns: panels in a row; by default all.
        settings: of `Figure.subplots`.
    """
    need("matplotlib")
    from matplotlib.figure import Figure

    columns = columns or count
    rows = -(-count // columns)
    figure = Figure(figsize=(4.3 * max(columns, 1.6), 0.3 + height * rows), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    every = list(figure.subplots(rows, columns, squeeze=False, **settings).flat)
    for axes in every:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    for axes in every[count:]:
        axes.set_visible(False)
    return figure, every[:count]


def label(axes: Axes, title: str, x: str = "", y: str = "") -> None:
    """The texts of a panel, with numbers of a few characters along it."""
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "linear":
            axis.set_major_formatter(lambda value, _: abbreviate(value))


def line(
    axes: Axes,
    xs: ArrayLike,
    ys: ArrayLike,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    colour: str,
    name: str | None = None,
    is_thin: bool = False,
) -> None:
    """A line, with a band between the bounds of its intervals; thin: one of many behind it."""
    if bounds is not None:
        axes.fill_between(xs, *bounds, color=colour, alpha=0.18, linewidth=0)
    shown = {"linewidth": 0.8, "alpha": 0.45} if is_thin else {"linewidth": 2}
    axes.plot(xs, ys, color=colour, label=name, **shown)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names in place of numbers, for the rows 0, 1, ... from the top; after `label`."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(names))}


def svg(figure: Figure) -> Picture:
    """The figure's text; equal figures give equal texts."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hackmatrix"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", file.getvalue())
    return Picture(text[text.index("<svg") :])


def abbreviate(value: float) -> str:
    """A number in a few characters: 40M, 2.5k, 0.0003."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if math.isfinite(value) and abs(value) >= size:
            return f"{value / size:.4g}{sign}"
    return f"{value:.4g}"
