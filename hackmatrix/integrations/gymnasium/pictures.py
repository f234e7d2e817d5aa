"""Pictures of a game by Gymnasium's render modes."""

from collections.abc import Sequence
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need
from hackmatrix.game.drawing import draw, in_words
from hackmatrix.game.engine.state import State

PICTURES = ("ansi", "rgb_array", "svg")  # those that `render` returns


def check_render_mode(mode: str | None, modes: Sequence[str]) -> None:
    """Raises `UserError` if a mode is not one of these, or Pillow is missing."""
    if mode is not None and mode not in modes:
        raise UserError(f"render_mode must be one of {', '.join(modes)}, got {mode!r}")
    if mode == "rgb_array":
        need("PIL")


def picture(state: State, mode: str | None) -> Any:
    """Text ("ansi", "svg") or uint8[H, W, 3] ("rgb_array"); None in other modes."""
    if mode == "rgb_array":
        from hackmatrix.game.drawing.pixels import pixels

        return pixels(state)
    if mode == "svg":
        return draw(state)
    return in_words(state) if mode == "ansi" else None
