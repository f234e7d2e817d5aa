"""Pictures of the game, from one table of colours and shapes."""

from hackmatrix.game.drawing.picture import draw, in_words

__all__ = ["draw", "in_words"]
