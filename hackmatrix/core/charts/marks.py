"""Marks of a panel as SVG elements: lines with bands, points, bars, intervals, shaded fields."""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#718096", "#975a16", "#0987a0")

At = Callable[[float, float], tuple[float, float]]  # where a pair of values lies, in pixels


class Line(NamedTuple):
    """A line through points, with the bounds of their intervals if there are any.

    Points that are not finite are left out.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    lows: Sequence[float] = ()
    highs: Sequence[float] = ()
    is_thin: bool = False  # one of many, behind the line that matters

    def values(self) -> tuple[list[float], list[float]]:
        """All numbers along x and along y."""
        return list(self.xs), [*self.ys, *self.lows, *self.highs]

    def draw(self, at: At, colour: str) -> Iterator[str]:
        """The elements of the band and the line."""
        if self.lows:
            up = _finite(at, self.xs, self.highs)
            down = _finite(at, self.xs, self.lows)
            band = _join_points([*up, *reversed(down)])
            yield f'<polygon points="{band}" fill="{colour}" opacity="0.18"/>'
        path = _join_points(_finite(at, self.xs, self.ys))
        stroke = 'stroke-width="0.8" opacity="0.45"' if self.is_thin else 'stroke-width="2"'
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" {stroke}/>'


class Points(NamedTuple):
    """Points, each with a text that shows when the pointer is over it."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    notes: Sequence[str] = ()
    shades: Sequence[float] = ()  # 0 is pale, 1 the full colour; all full if there are none

    def values(self) -> tuple[list[float], list[float]]:
        """All numbers along x and along y."""
        return list(self.xs), list(self.ys)

    def draw(self, at: At, colour: str) -> Iterator[str]:
        """The elements of the points."""
        for index, (x, y) in enumerate(zip(self.xs, self.ys, strict=True)):
            if not (math.isfinite(x) and math.isfinite(y)):
                continue
            across, down = at(x, y)
            opacity = 0.15 + 0.85 * self.shades[index] if self.shades else 0.85
            note = f"<title>{escape(self.notes[index])}</title>" if self.notes else ""
            yield (
                f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4" fill="{colour}" '
                f'fill-opacity="{opacity:.2f}" stroke="{colour}" stroke-opacity="0.4">{note}'
                "</circle>"
            )


class Bars(NamedTuple):
    """A horizontal bar in each of the panel's rows, the first at the top."""

    name: str
    sizes: Sequence[float]
    starts: Sequence[float] = ()  # where they begin: the ends of others that they follow; 0

    def values(self) -> tuple[list[float], list[float]]:
        """All numbers along x and along y."""
        starts = self.starts or [0.0] * len(self.sizes)
        ends = [start + size for start, size in zip(starts, self.sizes, strict=True)]
        return [*starts, *ends], [0.0, float(len(ends))]

    def draw(self, at: At, colour: str) -> Iterator[str]:
        """The elements of the bars."""
        (xs, _), count = self.values(), len(self.sizes)
        for row, (start, end) in enumerate(zip(xs[:count], xs[count:], strict=True)):
            left, top = at(start, count - row - 0.15)
            right, bottom = at(end, count - row - 0.85)
            yield (
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
                f'height="{bottom - top:.1f}" fill="{colour}" opacity="0.85">'
                f"<title>{escape(self.name)}: {self.sizes[row]:.4g}</title></rect>"
            )


class Intervals(NamedTuple):
    """A mean with its interval in each of the panel's rows, from the top, and a line at 0."""

    name: str
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]

    def values(self) -> tuple[list[float], list[float]]:
        """All numbers along x and along y."""
        return [0.0, *self.means, *self.lows, *self.highs], [0.0, float(len(self.means))]

    def draw(self, at: At, colour: str) -> Iterator[str]:
        """The elements of the line at 0, the intervals and the means."""
        count = len(self.means)
        yield f'<polyline points="{_join_points([at(0, 0), at(0, count)])}" class="axis"/>'
        for row, (low, high) in enumerate(zip(self.lows, self.highs, strict=True)):
            middle = count - row - 0.5
            ends = _join_points([at(low, middle), at(high, middle)])
            yield f'<polyline points="{ends}" stroke="{colour}" stroke-width="2"/>'
        middles = [count - row - 0.5 for row in range(count)]
        yield from Points(self.name, self.means, middles).draw(at, colour)


class ScalarField(NamedTuple):
    """A grid of shaded cells between edges along x and along y; `shades` has a row for each y."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    shades: Sequence[Sequence[float]]  # 0 is white, 1 the full colour

    def values(self) -> tuple[list[float], list[float]]:
        """All numbers along x and along y."""
        return list(self.xs), list(self.ys)

    def draw(self, at: At, colour: str) -> Iterator[str]:
        """The elements of the cells."""
        for (low, high), row in zip(pairwise(self.ys), self.shades, strict=True):
            for (start, end), shade in zip(pairwise(self.xs), row, strict=True):
                left, top = at(start, high)
                right, bottom = at(end, low)
                yield (
                    f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
                    f'height="{bottom - top:.1f}" fill="{colour}" fill-opacity="{shade:.2f}"/>'
                )


Mark = Line | Points | Bars | Intervals | ScalarField


def _finite(at: At, xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
    pairs = zip(xs, ys, strict=True)
    return [at(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]


def _join_points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
