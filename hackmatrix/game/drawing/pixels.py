"""The picture of a game as pixels; NumPy alone fills the polygons."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hackmatrix.game.drawing.letters import ADVANCE, LETTERS
from hackmatrix.game.drawing.letters import HEIGHT as LETTER_HEIGHT
from hackmatrix.game.drawing.marks import Group, Mark, Text
from hackmatrix.game.drawing.picture import HEIGHT, WIDTH, scene, shown_state
from hackmatrix.game.drawing.shapes import SHAPES, Layer
from hackmatrix.game.drawing.theme import CELL, COLOURS
from hackmatrix.game.drawing.visible_state import view

Pixels = NDArray[np.uint8]
Line = NDArray[np.float64]  # [n, 2], the points of a line, x and y

_LETTER_PEN = 1


def pixels(state: Any, *, scale: float = 0.75, reveal: bool = False) -> Pixels:
    """uint8[height, width, 3]: the picture that `draw` gives as SVG, without smooth edges.

    Args:
        state: see `draw`.
        scale: pixels per unit.
        reveal: see `draw`.

    Raises:
        TypeError: it is not a state.
        ValueError: it is a batch of games.
    """
    image = np.empty((round(HEIGHT * scale), round(WIDTH * scale), 3), np.uint8)
    image[:] = _rgb("background")
    for group in scene(view(shown_state(state), reveal=reveal)):
        _paint(image, group, 0, 0, scale)
    return image


def _paint(image: Pixels, group: Group, x: float, y: float, scale: float) -> None:
    x, y, scale = x + group.x * scale, y + group.y * scale, scale * group.scale
    for mark in group.marks:
        if isinstance(mark, Group):
            _paint(image, mark, x, y, scale)
            continue
        unit = mark.size / CELL if isinstance(mark, Mark) else mark.height / LETTER_HEIGHT
        for paint, pen, path in _layers(mark):
            colour = _rgb(mark.colour if paint == "ink" else paint)
            lines = [
                _placed(line, x + mark.x * scale, y + mark.y * scale, unit * scale)
                for line in _lines(path)
            ]
            if pen:
                _stroke(image, lines, pen * unit * scale, colour)
            else:
                _fill(image, lines, colour)


def _layers(mark: Mark | Text) -> Iterable[Layer]:
    if isinstance(mark, Mark):
        return SHAPES[mark.shape]
    letters = (letter for letter in enumerate(mark.text) if letter[1] != " ")
    return (("ink", _LETTER_PEN, f"{i * ADVANCE}|{LETTERS[letter]}") for i, letter in letters)


@lru_cache
def _lines(path: str) -> list[Line]:
    """The lines of a path; a letter's begins with how far it is moved to the right."""
    moved, _, path = path.rpartition("|")
    lines: list[list[tuple[float, float]]] = []
    for command, x, y in re.findall(r"([MLZ])(?:([\d.]+) ([\d.]+))?", path):
        if command == "Z":
            lines[-1].append(lines[-1][0])
            continue
        point = float(x) + float(moved or 0), float(y)
        lines.append([point]) if command == "M" else lines[-1].append(point)
    return [np.array(line) for line in lines]


def _placed(line: Line, x: float, y: float, scale: float) -> Line:
    return line * scale + (x, y)


def _fill(image: Pixels, lines: list[Line], colour: Pixels) -> None:
    """Fills polygons, by the rule that paths with a hole need: an even number of edges is out."""
    rows, cols, x, y = _around(image, np.concatenate(lines), 0)
    inside = np.zeros((len(y), len(x)), np.bool_)
    for line in lines:
        for (x0, y0), (x1, y1) in _edges(np.concatenate([line, line[:1]])):
            if y0 != y1:
                crosses = (y0 <= y) != (y1 <= y)
                at = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
                inside ^= crosses[:, None] & (x[None] < at[:, None])
    image[rows, cols][inside] = colour


def _stroke(image: Pixels, lines: list[Line], width: float, colour: Pixels) -> None:
    """Draws lines with a round pen, at least a pixel wide."""
    reach = max(width / 2, 0.5)
    for line in lines:
        for start, end in _edges(line):
            rows, cols, x, y = _around(image, np.array([start, end]), reach)
            way = end - start
            dx, dy = x[None] - start[0], y[:, None] - start[1]
            along = np.clip((dx * way[0] + dy * way[1]) / max(way @ way, 1e-9), 0, 1)
            far = (dx - along * way[0]) ** 2 + (dy - along * way[1]) ** 2
            image[rows, cols][far <= reach**2] = colour


def _edges(line: Line) -> Iterator[tuple[Line, Line]]:
    return pairwise(line)


def _around(image: Pixels, points: Line, reach: float) -> tuple[slice, slice, Line, Line]:
    """The part of the image around points, and the middles of its columns and rows."""
    low = np.maximum(np.floor(points.min(0) - reach), 0).astype(int)
    high = np.minimum(np.ceil(points.max(0) + reach) + 1, image.shape[1::-1]).astype(int)
    x, y = np.arange(low[0], high[0]) + 0.5, np.arange(low[1], high[1]) + 0.5
    return slice(low[1], high[1]), slice(low[0], high[0]), x, y


@lru_cache
def _rgb(name: str) -> Pixels:
    code = COLOURS[name]
    return np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)], np.uint8)
