"""The game in plain Python: the oracle. One file for each chapter of `docs/rules.md`."""

from hackmatrix.engine.game import Game, Outcome

__all__ = ["Game", "Outcome"]
