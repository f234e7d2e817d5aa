"""Pictures as pixels, drawn with Pillow twice as large and scaled down."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from hackmatrix.game.drawing.marks import Mark, SvgGroup, Text
from hackmatrix.game.drawing.picture import HEIGHT, WIDTH, scene, state_to_draw
from hackmatrix.game.drawing.shapes import ADVANCE, LETTERS, SHAPES
from hackmatrix.game.drawing.shapes import HEIGHT as LETTER_HEIGHT
from hackmatrix.game.drawing.theme import CELL, COLOURS
from hackmatrix.game.drawing.visible_state import view

_LARGER = 2  # times as many pixels each way, averaged at the end

Point = tuple[float, float]
Canvas = ImageDraw.ImageDraw


def pixels(state: Any, *, scale: float = 0.75, reveal: bool = False) -> NDArray[np.uint8]:
    """uint8[height, width, 3]: the picture that `draw` gives as SVG.

    Args:
        state: see `draw`.
        scale: pixels per unit.
        reveal: see `draw`.

    Raises:
        TypeError: it is not a state.
        ValueError: it is a batch of games.
    """
    groups = scene(view(state_to_draw(state), reveal=reveal))
    return np.asarray(raster(groups, (WIDTH, HEIGHT), round(WIDTH * scale)))


def raster(groups: Sequence[SvgGroup], size: tuple[float, float], width: int) -> Image.Image:
    """An RGB image of some groups of marks.

    Args:
        groups: back to front.
        size: width and height of the picture in units.
        width: of the image in pixels; its height follows, rounded to an even number.
    """
    scale = width / size[0]
    pixels = (width, 2 * round(size[1] * scale / 2))
    larger = (pixels[0] * _LARGER, pixels[1] * _LARGER)
    image = Image.new("RGB", larger, COLOURS["background"])
    canvas = ImageDraw.Draw(image)
    for group in groups:
        _draw(canvas, group, 0, 0, scale * _LARGER)
    return image.resize(pixels, Image.Resampling.BOX)


def _draw(canvas: Canvas, mark: Mark | Text | SvgGroup, x: float, y: float, scale: float) -> None:
    """Draws a mark whose origin is at the pixel (x, y)."""
    left, top = x + mark.x * scale, y + mark.y * scale
    if isinstance(mark, SvgGroup):
        for each in mark.marks:
            _draw(canvas, each, left, top, scale * mark.scale)
    elif isinstance(mark, Text):
        unit = scale * mark.height / LETTER_HEIGHT
        for i, letter in enumerate(mark.text):
            path = LETTERS.get(letter, "")
            _stroke(canvas, path, left + i * ADVANCE * unit, top, unit, 1, COLOURS[mark.colour])
    else:
        unit = scale * mark.size / CELL
        for paint, pen, path in SHAPES[mark.shape]:
            colour = COLOURS.get(paint) or COLOURS[mark.colour]
            if pen:
                _stroke(canvas, path, left, top, unit, pen, colour)
            else:
                for points, _ in _lines(path, left, top, unit):
                    canvas.polygon(points, fill=colour)


def _stroke(
    canvas: Canvas, path: str, x: float, y: float, unit: float, pen: float, colour: str
) -> None:
    """Strokes a path with a round pen."""
    width = max(1, round(pen * unit))
    radius = width / 2
    for points, closed in _lines(path, x, y, unit):
        ends = [*points, points[0]] if closed else points
        canvas.line(ends, fill=colour, width=width)
        if width > 1:
            for px, py in points:
                canvas.ellipse((px - radius, py - radius, px + radius, py + radius), fill=colour)


def _lines(path: str, x: float, y: float, unit: float) -> Iterable[tuple[list[Point], bool]]:
    """The polygons and open lines of a path, in pixels, and whether they are closed."""
    for part in path.split("M")[1:]:
        numbers = [float(number) for number in re.findall(r"[\d.]+", part)]
        points = zip(numbers[::2], numbers[1::2], strict=True)
        yield [(x + px * unit, y + py * unit) for px, py in points], part.rstrip().endswith("Z")
