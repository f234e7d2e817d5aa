"""A picture of a game: the board between the stage's numbers and the player's."""

from collections.abc import Iterable, Iterator
from typing import Any

from hackmatrix.game.drawing import alt_text as words
from hackmatrix.game.drawing import panel
from hackmatrix.game.drawing.board import board
from hackmatrix.game.drawing.marks import SvgGroup, Text
from hackmatrix.game.drawing.svg import svg
from hackmatrix.game.drawing.theme import CELL
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.board import SIZE

_MARGIN, _GAP = 24, 16
_BOARD = SIZE * CELL
_BOARD_TOP = _MARGIN + panel.STAT_HEIGHT + _GAP
_PLAYER_TOP = _BOARD_TOP + _BOARD + 2 * _GAP
_RACK_TOP = _PLAYER_TOP + panel.STAT_HEIGHT + _GAP
WIDTH = _BOARD + 2 * _MARGIN
HEIGHT = _RACK_TOP + panel.RACK_HEIGHT + _MARGIN


class BoardPicture(str):
    """SVG text that notebooks display as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def draw(state: Any, *, reveal: bool = False) -> BoardPicture:
    """A picture of a game as SVG text: what the player sees.

    Args:
        state: a `Game`, its state, or a state of the JAX environment (`EnvState`); one game.
        reveal: also show hidden things, marked with a question mark.

    Raises:
        TypeError: it is not a state.
        ValueError: it is a batch of games.
    """
    seen = view(state_to_draw(state), reveal=reveal)
    return BoardPicture(svg(WIDTH, HEIGHT, scene(seen), words.title(seen), words.description(seen)))


def in_words(state: Any, *, reveal: bool = False) -> str:
    """The board in letters and a line for each fact, for terminals: what the player sees.

    Args:
        state: see `draw`.
        reveal: see `draw`.
    """
    seen = view(state_to_draw(state), reveal=reveal)
    return f"{words.title(seen)}\n{words.description(seen)}\n"


def scene(visible: dict[str, Any]) -> list[SvgGroup]:
    """All groups of the picture of a `view`, back to front, independent of format."""
    return [
        *_move(panel.stage_stats(visible, _BOARD), _MARGIN),
        SvgGroup("rows and columns", 0, _BOARD_TOP, tuple(_coordinates())),
        *_move(board(visible), _BOARD_TOP),
        *_move(panel.player_stats(visible, _BOARD), _PLAYER_TOP),
        *_move(panel.rack(visible), _RACK_TOP),
    ]


def _move(groups: Iterable[SvgGroup], y: float) -> Iterator[SvgGroup]:
    return (group._replace(x=_MARGIN + group.x, y=y + group.y) for group in groups)


def _coordinates() -> Iterator[Text]:
    for i in range(SIZE):
        middle = (i + 0.5) * CELL
        yield Text(str(SIZE - 1 - i), 8, middle - 5, 10, "faint")
        yield Text(str(i), _MARGIN + middle - 3, _BOARD + 6, 10, "faint")


def state_to_draw(state: Any) -> State:
    """Converts to a state of the Python engine."""
    if isinstance(state, Game):
        return state.state
    if isinstance(state, State):
        return state
    if not hasattr(state, "to_engine"):
        raise TypeError(f"expected a game or its state, got {type(state).__name__}")
    converted: State = state.to_engine()
    return converted
