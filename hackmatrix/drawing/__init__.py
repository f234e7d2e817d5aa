"""Pictures of the game, from one table of colours and shapes."""

from hackmatrix.drawing.picture import draw

__all__ = ["draw"]
