"""The game in plain Python, the reference engine: one file per chapter of `docs/rules.md`."""

from hackmatrix.game.engine.game import Game, Outcome

__all__ = ["Game", "Outcome"]
