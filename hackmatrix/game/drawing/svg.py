"""Converts marks to SVG text: flat paths, no fonts, no scripts, no external resources."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from xml.sax.saxutils import escape

from hackmatrix.game.drawing.marks import Mark, SvgGroup, Text
from hackmatrix.game.drawing.shapes import ADVANCE, HEIGHT, LETTERS, SHAPES, Layer
from hackmatrix.game.drawing.theme import CELL, COLOURS

_PIXELS = 0.75  # pixels per unit at the default size


def svg(
    width: float, height: float, groups: Sequence[SvgGroup], title: str, description: str
) -> str:
    """SVG text of a picture of `width` x `height` units.

    Args:
        width: in units.
        height: in units.
        groups: the marks, back to front.
        title: one-line text alternative.
        description: long text alternative.
    """
    marks = Counter(chain.from_iterable(map(_marks, groups)))
    repeated = {mark for mark, times in marks.items() if times > 1}
    viewed = f"0 0 {_format_number(width)} {_format_number(height)}"
    size = f'width="{_format_number(width * _PIXELS)}" height="{_format_number(height * _PIXELS)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{viewed}" {size} role="img" '
            'fill="currentColor" stroke-linecap="round" stroke-linejoin="round">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            "<defs>",
            *_shapes(marks),
            *(_element(mark, _mark_id(mark)) for mark in marks if mark in repeated),
            "</defs>",
            f'<rect width="100%" height="100%" fill="{COLOURS["background"]}"/>',
            *(_group(group, repeated) for group in groups),
            "</svg>\n",
        ]
    )


def _marks(group: SvgGroup) -> Iterator[Mark | Text]:
    for mark in group.marks:
        if isinstance(mark, SvgGroup):
            yield from _marks(mark)
        else:
            yield mark


def _shapes(marks: Counter[Mark | Text]) -> Iterator[str]:
    """Definitions of the shapes that are used, once each."""
    for name in sorted({mark.shape for mark in marks if isinstance(mark, Mark)}):
        yield f'<g id="{_shape_id(name)}">{"".join(map(_layer, SHAPES[name]))}</g>'


def _layer(layer: Layer) -> str:
    paint, width, path = layer
    colour = COLOURS.get(paint, "currentColor")
    if width:
        return f'<path fill="none" stroke="{colour}" stroke-width="{width}" d="{_path(path)}"/>'
    fill = "" if paint == "ink" else f'fill="{colour}" '
    return f'<path {fill}d="{_path(path)}"/>'


def _group(group: SvgGroup, repeated: set[Mark | Text]) -> str:
    title = f"<title>{escape(group.title)}</title>" if group.title else ""
    marks = "".join(_mark(mark, repeated) for mark in group.marks)
    return f'<g transform="{_transform(group.x, group.y, group.scale)}">{title}{marks}</g>'


def _mark(mark: Mark | Text | SvgGroup, repeated: set[Mark | Text]) -> str:
    if isinstance(mark, SvgGroup):
        return _group(mark, repeated)
    return f'<use href="#{_mark_id(mark)}"/>' if mark in repeated else _element(mark)


def _element(mark: Mark | Text, mark_id: str = "") -> str:
    name = f'id="{mark_id}" ' if mark_id else ""
    colour = COLOURS[mark.colour]
    if isinstance(mark, Mark):
        transform = _transform(mark.x, mark.y, mark.size / CELL)
        return (
            f'<use {name}href="#{_shape_id(mark.shape)}" color="{colour}" transform="{transform}"/>'
        )
    transform = _transform(mark.x, mark.y, mark.height / HEIGHT)
    path = "".join(
        _path(LETTERS[letter], i * ADVANCE) for i, letter in enumerate(mark.text) if letter != " "
    )
    return f'<path {name}fill="none" stroke="{colour}" transform="{transform}" d="{path}"/>'


def _transform(x: float, y: float, scale: float) -> str:
    moved = f"translate({_format_number(x)} {_format_number(y)})"
    return moved if scale == 1 else f"{moved}scale({_format_number(scale)})"


def _path(path: str, right: float = 0) -> str:
    """The path moved to the right, shortened by relative steps after each start."""
    x = y = 0.0
    steps = []
    for command, *point in re.findall(r"([MLZ])(?:([\d.]+) ([\d.]+))?", path):
        if command == "Z":
            steps.append("z")
            continue
        last_x, last_y = x, y
        x, y = map(float, point)
        if command == "M":
            steps.append(f"M{_format_number(x + right)} {_format_number(y)}")
        elif y == last_y:
            steps.append(f"h{_format_number(x - last_x)}")
        elif x == last_x:
            steps.append(f"v{_format_number(y - last_y)}")
        else:
            steps.append(f"l{_format_number(x - last_x)} {_format_number(y - last_y)}")
    return "".join(steps).replace(" -", "-")


# One notebook page may hold several pictures, so an id must mean the same in all of them.


def _shape_id(name: str) -> str:
    return "hm-" + name.replace("+", "-plus")


def _mark_id(mark: Mark | Text) -> str:
    return "hm" + blake2b(repr(mark).encode(), digest_size=4).hexdigest()


def _format_number(value: float) -> str:
    """The shortest text of a number rounded to hundredths."""
    digits = f"{abs(value):.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
    return f"-{digits}" if value < 0 and digits != "0" else digits
