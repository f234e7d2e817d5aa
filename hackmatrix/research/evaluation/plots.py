"""Plots as SVG text, without third parties: lines with bands, bars, and means with intervals."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple, TypeVar

from hackmatrix.core.charts.marks import COLOURS

_T = TypeVar("_T")

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 16, 44


class Line(NamedTuple):
    """A line of means with the bounds of their intervals."""

    name: str
    xs: Sequence[float]
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


class Bars(NamedTuple):
    """One series of a bar plot: a value for each group."""

    name: str
    values: Sequence[float]


class Mean(NamedTuple):
    """A mean with its interval."""

    name: str
    mean: float
    low: float
    high: float


def line_plot(lines: Sequence[Line], *, title: str, x: str, highest: float) -> str:
    """Lines over whole numbers, on a vertical axis from 0 to `highest`."""
    xs = sorted({value for line in lines for value in line.xs})
    first, last = xs[0], max(xs[-1], xs[0] + 1)

    def across(value: float) -> float:
        return _LEFT + (value - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)

    parts = _axis(highest) + [_label(across(value), f"{value:g}") for value in xs] + [_below(x)]
    for line, colour in _coloured(lines):
        up = [(across(a), _down(b, highest)) for a, b in zip(line.xs, line.highs, strict=True)]
        low = [(across(a), _down(b, highest)) for a, b in zip(line.xs, line.lows, strict=True)]
        mid = [(across(a), _down(b, highest)) for a, b in zip(line.xs, line.means, strict=True)]
        band = _points([*up, *reversed(low)])
        parts.append(f'<polygon points="{band}" fill="{colour}" opacity="0.15"/>')
        parts.append(
            f'<polyline points="{_points(mid)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in mid]
    return _picture(title, _HEIGHT, parts, [line.name for line in lines])


def bar_plot(groups: Sequence[str], series: Sequence[Bars], *, title: str, x: str) -> str:
    """Bars that are stacked, for values such as counts; a stack for each group."""
    totals = [sum(bars.values[i] for bars in series) for i in range(len(groups))]
    highest = max([*totals, 1])
    step = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    parts = [*_axis(highest), _below(x)]
    heights = [0.0] * len(groups)
    for bars, colour in _coloured(series):
        for place, value in enumerate(bars.values):
            top = _down(heights[place] + value, highest)
            tall = _down(heights[place], highest) - top
            left = _LEFT + step * (place + 0.15)
            parts.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{step * 0.7:.1f}" height="{tall:.1f}" '
                f'fill="{colour}"><title>{escape(bars.name)}: {value:g}</title></rect>'
            )
            heights[place] += value
    parts += [_label(_LEFT + step * (i + 0.5), name) for i, name in enumerate(groups)]
    return _picture(title, _HEIGHT, parts, [bars.name for bars in series])


def mean_plot(means: Sequence[Mean], *, title: str) -> str:
    """Means with intervals below one another, and a line at 0."""
    low = min(0.0, *(mean.low for mean in means))
    high = max(0.0, *(mean.high for mean in means))
    room, left = high - low or 1.0, 210

    def across(value: float) -> float:
        return left + (value - low) / room * (_WIDTH - left - 70)

    height = 24 * len(means) + 32
    parts = [
        f'<line x1="{across(0):.1f}" x2="{across(0):.1f}" y1="8" y2="{height - 24}" class="axis"/>'
    ]
    for place, mean in enumerate(means):
        y = 24 * place + 22
        parts += [
            f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{escape(mean.name)}</text>',
            f'<line x1="{across(mean.low):.1f}" x2="{across(mean.high):.1f}" y1="{y}" y2="{y}" '
            f'stroke="{COLOURS[0]}" stroke-width="2"/>',
            f'<circle cx="{across(mean.mean):.1f}" cy="{y}" r="4" fill="{COLOURS[0]}"/>',
            f'<text x="{_WIDTH - 58}" y="{y + 4}">{mean.mean:+.3f}</text>',
        ]
    return _picture(title, height, parts, [])


def _coloured(series: Sequence[_T]) -> list[tuple[_T, str]]:
    return [(each, COLOURS[i % len(COLOURS)]) for i, each in enumerate(series)]


def _down(value: float, highest: float) -> float:
    return _HEIGHT - _BOTTOM - value / highest * (_HEIGHT - _TOP - _BOTTOM)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _axis(highest: float) -> list[str]:
    """Five lines across, with their values."""
    parts = []
    for fifth in range(5):
        value = highest * fifth / 4
        y = _down(value, highest)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="axis"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    return parts


def _label(x: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{_HEIGHT - 26}" text-anchor="middle">{escape(text)}</text>'


def _below(text: str) -> str:
    return f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(text)}</text>'


def _picture(title: str, height: float, parts: Sequence[str], names: Sequence[str]) -> str:
    """A figure with its title and legend in HTML."""
    keys = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in _coloured(names)
    )
    legend = f'<div class="legend">{keys}</div>' if len(names) > 1 else ""
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>{legend}"
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></figure>"
    )
