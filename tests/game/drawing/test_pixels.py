"""The picture as pixels: its size, and its colours where they belong."""

import numpy as np
import pytest

from hackmatrix.game.drawing.picture import HEIGHT, WIDTH
from hackmatrix.game.drawing.pixels import pixels
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
    assert image.shape == (2 * round(HEIGHT * scale / 2), round(WIDTH * scale), 3)
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
