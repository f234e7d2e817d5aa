"""Panels side by side in one SVG file, with a title and a legend."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from hackmatrix.core.charts.axis import Axis, in_short
from hackmatrix.core.charts.marks import COLOURS, Bars, Mark

_WIDTH, _HEIGHT = 420, 300  # of a panel, pixels
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 26, 44
_HEAD = 46  # above the panels: title and legend
_STYLE = (
    "text{font:11px sans-serif;fill:#333}.title{font-size:13px;font-weight:600}"
    ".axis{stroke:#ccc;stroke-width:1}.end{text-anchor:end}.mid{text-anchor:middle}"
)


class Panel(NamedTuple):
    """One plot: its marks, drawn in this order, and what its axes say."""

    title: str
    x: str
    y: str
    marks: Sequence[Mark]
    log_x: bool = False
    log_y: bool = False


def picture(title: str, panels: Sequence[Panel]) -> str:
    """The text of an SVG file. Marks of the same name have the same colour in all panels."""
    names = list(dict.fromkeys(mark.name for panel in panels for mark in panel.marks))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    width, height = _WIDTH * len(panels), _HEAD + _HEIGHT
    parts = [f'<text x="12" y="18" class="title">{escape(title)}</text>']
    parts += _legend([name for name in names if name], colours)
    for place, panel in enumerate(panels):
        inside = "".join(_panel(panel, colours))
        parts.append(f'<g transform="translate({_WIDTH * place},{_HEAD})">{inside}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}"><style>{_STYLE}</style>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _legend(names: Sequence[str], colours: dict[str, str]) -> Iterator[str]:
    if len(names) < 2:
        return
    x = 12.0
    for name in names:
        yield f'<rect x="{x:.0f}" y="28" width="10" height="10" fill="{colours[name]}"/>'
        yield f'<text x="{x + 15:.0f}" y="37">{escape(name)}</text>'
        x += 30 + 6.2 * len(name)


def _panel(panel: Panel, colours: dict[str, str]) -> Iterator[str]:
    found = [mark.values() for mark in panel.marks]
    across = Axis.over([x for xs, _ in found for x in xs], panel.x, log=panel.log_x)
    up = Axis.over([y for _, ys in found for y in ys], panel.y, log=panel.log_y)

    def at(x: float, y: float) -> tuple[float, float]:
        inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return (_LEFT + across.place(x) * inner_width, _TOP + (1 - up.place(y)) * inner_height)

    yield f'<text x="{_LEFT}" y="16">{escape(panel.title)}</text>'
    bars = any(isinstance(mark, Bars) for mark in panel.marks)
    for tick in [] if bars else up.ticks():
        y = at(across.low, tick)[1]
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="axis"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" class="end">{in_short(tick)}</text>'
    for tick in across.ticks():
        x = at(tick, up.low)[0]
        yield f'<text x="{x:.1f}" y="{_HEIGHT - 26}" class="mid">{in_short(tick)}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{_HEIGHT - 8}" class="mid">{escape(panel.x)}</text>'
    half = (_TOP + _HEIGHT - _BOTTOM) / 2
    yield (
        f'<text transform="translate(13,{half:.1f}) rotate(-90)" class="mid">{escape(panel.y)}'
        "</text>"
    )
    for mark in panel.marks:
        yield from mark.draw(at, colours[mark.name])
