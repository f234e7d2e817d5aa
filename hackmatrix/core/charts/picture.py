"""Panels side by side in one SVG file, with a title and a legend."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from hackmatrix.core.charts.axis import Axis, abbreviate
from hackmatrix.core.charts.marks import COLOURS, Mark

_WIDTH, _HEIGHT = 348, 230  # of what a panel shows, pixels
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 26, 44  # around it
_ROW, _LETTER = 22, 6.2  # the height of a row, about the width of a letter
_HEAD = 46  # above the panels: title and one line of the legend
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
    rows: Sequence[str] = ()  # their names, from the top: instead of numbers along y
    ys: Sequence[float] = ()  # numbers that the y axis has room for besides those of the marks

    @property
    def left(self) -> float:
        """The room to the left of what is shown, in pixels."""
        return max([_LEFT, *(30 + _LETTER * len(row) for row in self.rows)])

    @property
    def height(self) -> float:
        """The height of what is shown, in pixels."""
        return _ROW * len(self.rows) if self.rows else _HEIGHT


class Picture(str):
    """The text of an SVG file; a notebook shows the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def picture(title: str, panels: Sequence[Panel]) -> Picture:
    """Panels side by side. Marks of the same name have the same colour in all panels."""
    names = list(dict.fromkeys(mark.name for panel in panels for mark in panel.marks))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    widths = [panel.left + _WIDTH + _RIGHT for panel in panels]
    parts = [f'<text x="12" y="18" class="title">{escape(title)}</text>']
    legend, head = _legend([name for name in names if name], colours, sum(widths))
    parts += legend
    for place, panel in enumerate(panels):
        inside = "".join(_panel(panel, colours))
        parts.append(f'<g transform="translate({sum(widths[:place]):g},{head})">{inside}</g>')
    width = f"{sum(widths):g}"
    height = f"{head + _TOP + max(panel.height for panel in panels) + _BOTTOM:g}"
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}"><style>{_STYLE}</style>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _legend(names: Sequence[str], colours: dict[str, str], width: float) -> tuple[list[str], int]:
    """The legend in as many lines as it needs, and the height of title and legend."""
    parts, x, y = [], 12.0, 28
    for name in names if len(names) > 1 else ():
        room = 30 + _LETTER * len(name)
        if x > 12 and x + room > width:
            x, y = 12.0, y + 16
        parts.append(f'<rect x="{x:.0f}" y="{y}" width="10" height="10" fill="{colours[name]}"/>')
        parts.append(f'<text x="{x + 15:.0f}" y="{y + 9}">{escape(name)}</text>')
        x += room
    return parts, _HEAD + y - 28


def _panel(panel: Panel, colours: dict[str, str]) -> Iterator[str]:
    found = [mark.values() for mark in panel.marks]
    across = Axis.over([x for xs, _ in found for x in xs], panel.x, log=panel.log_x)
    up = Axis.over([*panel.ys, *(y for _, ys in found for y in ys)], panel.y, log=panel.log_y)
    left, right, bottom = panel.left, panel.left + _WIDTH, _TOP + panel.height

    def at(x: float, y: float) -> tuple[float, float]:
        return left + across.position(x) * _WIDTH, bottom - up.position(y) * panel.height

    yield f'<text x="{left:g}" y="16">{escape(panel.title)}</text>'
    for row, name in enumerate(panel.rows):
        y = at(across.low, len(panel.rows) - row - 0.5)[1]
        yield f'<text x="{left - 6:g}" y="{y + 4:.1f}" class="end">{escape(name)}</text>'
    for tick in [] if panel.rows else up.ticks():
        y = at(across.low, tick)[1]
        yield f'<line x1="{left:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}" class="axis"/>'
        yield f'<text x="{left - 6:g}" y="{y + 4:.1f}" class="end">{abbreviate(tick)}</text>'
    for tick in across.ticks():
        x = at(tick, up.low)[0]
        yield f'<text x="{x:.1f}" y="{bottom + 18:g}" class="mid">{abbreviate(tick)}</text>'
    middle = left + _WIDTH / 2
    yield f'<text x="{middle:.1f}" y="{bottom + 36:g}" class="mid">{escape(panel.x)}</text>'
    half = (_TOP + bottom) / 2
    yield (
        f'<text transform="translate(13,{half:.1f}) rotate(-90)" class="mid">{escape(panel.y)}'
        "</text>"
    )
    for mark in panel.marks:
        yield from mark.draw(at, colours[mark.name])
