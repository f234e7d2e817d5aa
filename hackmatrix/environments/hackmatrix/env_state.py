"""The state of the public environment."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hackmatrix.game.drawing import draw
from hackmatrix.game.engine import state as engine
from hackmatrix.game.jaxgame import text
from hackmatrix.game.jaxgame.conversion import state_to_engine
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.rewards import UNIT


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class EnvState:
    """A game, and return and length of its episode.

    Its repr draws the board of the game, or of the first of many; while traced it shows shapes.
    """

    game: State
    episode_return: jax.Array  # int32, in units of 0.005
    episode_length: jax.Array  # int32, actions taken

    def __repr__(self) -> str:
        if text.has_values(self):
            try:
                return self._drawn()
            except Exception:  # not a valid game; a repr must not fail in a debugger
                pass
        numbers = len(jax.tree.leaves(self.game))
        sums = _shown(self.episode_return), _shown(self.episode_length)
        return (
            f"EnvState(game=<{numbers} arrays>, episode_return={sums[0]}, episode_length={sums[1]})"
        )

    def _drawn(self) -> str:
        games = self.game.over.shape
        one = jax.tree.map(lambda x: np.asarray(x)[(0,) * len(games)], self) if games else self
        which = f" of {' x '.join(map(str, games))} games, the first" if games else ""
        sums = f"return {one.episode_return * UNIT:g} after {one.episode_length} actions"
        return f"EnvState{which}: {sums}\n{text.summary(one.game)}"

    def to_engine(self) -> engine.State:
        """Converts the game to a state of the Python engine.

        Raises:
            ValueError: there are several games in the state.
        """
        return state_to_engine(self.game)

    def _repr_html_(self) -> str | None:
        """The picture of one game, for notebooks."""
        if not text.has_values(self) or self.game.over.shape:
            return None
        return draw(self)


def _shown(number: Any) -> str:
    """An array by dtype and shape, such as int32[16]."""
    if not hasattr(number, "dtype"):
        return repr(number)
    return f"{number.dtype}[{', '.join(map(str, number.shape))}]"
