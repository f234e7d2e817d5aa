"""The elements of a picture, independent of format: shapes and lines of text, back to front."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hackmatrix.game.drawing.shapes import ADVANCE, HEIGHT, WIDTH
from hackmatrix.game.drawing.theme import ANCHORS, STEPS, TEXT_ANCHORS


class Mark(NamedTuple):
    """A shape of `look.SHAPES`: a square `size` units wide with the upper left corner (x, y)."""

    shape: str
    x: float
    y: float
    size: float
    colour: str  # of the ink, a name in `look.COLOURS`


class Text(NamedTuple):
    """A line in `letters.LETTERS`, `height` units high, with the upper left corner (x, y)."""

    text: str
    x: float
    y: float
    height: float
    colour: str  # a name in `look.COLOURS`


class SvgGroup(NamedTuple):
    """Marks that belong together, such as those of one cell.

    (x, y) is their origin in the enclosing group or picture; `scale` is applied to them.
    """

    title: str  # what it shows, in words; may be empty
    x: float
    y: float
    marks: tuple["Mark | Text | SvgGroup", ...]
    scale: float = 1


Marks = Iterator[Mark | Text | SvgGroup]


def shape(anchor: str, name: str, colour: str) -> Mark:
    """A shape at a place of `look.PLACES`."""
    return Mark(name, *ANCHORS[anchor], colour)


def row(anchor: str, name: str, colours: Sequence[str], *, centred: bool = False) -> Marks:
    """The same shape once for each colour, a step of `look.STEPS` apart.

    Args:
        anchor: of `look.PLACES`, where the first one is.
        name: of the shape.
        colours: of the inks.
        centred: the row is centred on the place instead.
    """
    x, y, size = ANCHORS[anchor]
    dx, dy = STEPS[anchor]
    first = -(len(colours) - 1) / 2 if centred else 0
    for i, colour in enumerate(colours):
        yield Mark(name, x + (first + i) * dx, y + (first + i) * dy, size, colour)


def text(anchor: str, line: str, colour: str) -> Text:
    """A text at a place of `look.TEXT_PLACES`."""
    return fit_text(line, *TEXT_ANCHORS[anchor], colour)


def fit_text(
    line: str, x: float, y: float, width: float, height: float, align: float, colour: str
) -> Text:
    """A text in a box with the upper left corner (x, y), smaller if it would be too wide.

    Args:
        line: what to write.
        x: of the box.
        y: of the box.
        width: of the box.
        height: of the box, and of the letters where they fit.
        align: 0 left, 0.5 in the middle, 1 right.
        colour: a name in `look.COLOURS`.
    """
    scale = min(1, width / text_width(line, height))
    left = x + (width - text_width(line, height * scale)) * align
    return Text(line, left, y + height * (1 - scale) / 2, height * scale, colour)


def text_width(line: str, height: float) -> float:
    """Width of a text, in units."""
    return (ADVANCE * (len(line) - 1) + WIDTH) * height / HEIGHT
