"""The picture as pixels: its size, its colours, and that polygons are filled where they are."""

import numpy as np
import pytest

from hackmatrix.game.drawing.picture import HEIGHT, WIDTH
from hackmatrix.game.drawing.pixels import _fill, _stroke, pixels
from hackmatrix.game.drawing.theme import CELL, COLOURS
from hackmatrix.game.engine import Game

POSITION = """
    s. .. .. .. .. X.
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. D. .. .. ..
    .. .. .. .v .. ..
    .@ .. .. .. .. .c
"""
WHITE = np.array([255, 255, 255], np.uint8)


def colour(name: str) -> list[int]:
    return [int(COLOURS[name][i : i + 2], 16) for i in (1, 3, 5)]


def colours_of(image: np.ndarray, cell: tuple[int, int]) -> set[tuple[int, ...]]:
    """The colours in a cell of the board, whose origin is found by the picture's layout."""
    from hackmatrix.game.drawing.picture import _BOARD_TOP, _MARGIN

    top = _BOARD_TOP + (5 - cell[0]) * CELL
    left = _MARGIN + cell[1] * CELL
    part = image[top : top + CELL, left : left + CELL].reshape(-1, 3)
    return {tuple(each) for each in np.unique(part, axis=0).tolist()}


@pytest.mark.parametrize("scale", [0.5, 1])
def test_size(scale: float) -> None:
    image = pixels(Game.from_text(POSITION), scale=scale)
    assert image.shape == (round(HEIGHT * scale), round(WIDTH * scale), 3)
    assert image[0, 0].tolist() == colour("background")


def test_pieces_are_where_they_stand_in_their_colours() -> None:
    image = pixels(Game.from_text(POSITION), scale=1)
    for cell, name in [
        ((0, 0), "player"),
        ((1, 3), "virus"),
        ((2, 2), "data"),
        ((5, 0), "siphon"),
        ((5, 5), "exit"),
    ]:
        assert tuple(colour(name)) in colours_of(image, cell), name
    assert tuple(colour("virus")) not in colours_of(image, (3, 3))


def test_what_is_hidden_is_not_drawn_unless_revealed() -> None:
    text = POSITION.replace(".c", "..").replace("D. ..", "D. .c")
    game = Game.from_text(f"{text}\nenemy virus 1,3\nenemy cryptog 2,3 last 4,4")
    assert tuple(colour("cryptog")) not in colours_of(pixels(game, scale=1), (2, 3))
    assert tuple(colour("cryptog")) in colours_of(pixels(game, scale=1, reveal=True), (2, 3))


def test_a_polygon_with_a_hole_is_filled() -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    square = np.array([[1, 1], [7, 1], [7, 7], [1, 7]], float)
    hole = np.array([[3, 3], [5, 3], [5, 5], [3, 5]], float)
    _fill(image, [square, hole], WHITE)
    filled = image[:, :, 0] > 0
    assert filled.sum() == 36 - 4
    assert not filled[3:5, 3:5].any()
    assert filled[1:7, 1].all()


def test_a_line_is_as_wide_as_its_pen() -> None:
    image = np.zeros((10, 10, 3), np.uint8)
    _stroke(image, [np.array([[0, 5], [10, 5]], float)], 4, WHITE)
    assert (image[:, 5, 0] > 0).tolist() == [3 <= row < 7 for row in range(10)]
