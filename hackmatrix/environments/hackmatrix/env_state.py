"""The state of the public environment."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.game.drawing import draw
from hackmatrix.game.engine import state as engine
from hackmatrix.game.engine import text
from hackmatrix.game.jaxgame.conversion import state_to_engine
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.rewards import UNIT


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class EnvState:
    """A game, and return and length of its episode.

    Its repr draws the board of the game, or of the first of many; while traced it shows shapes.
    """

    game: Any  # as the engine that plays it has it: `jaxgame.State`, or `native.xla.Games`
    episode_return: jax.Array  # int32, in units of 0.005
    episode_length: jax.Array  # int32, actions taken

    def __repr__(self) -> str:
        if _has_values(self):
            try:
                return self._drawn()
            except Exception:  # not a valid game; a repr must not fail in a debugger
                pass
        numbers = len(jax.tree.leaves(self.game))
        sums = _describe(self.episode_return), _describe(self.episode_length)
        return (
            f"EnvState(game=<{numbers} arrays>, episode_return={sums[0]}, episode_length={sums[1]})"
        )

    def _drawn(self) -> str:
        games = self.episode_length.shape
        one = jax.tree.map(lambda x: np.asarray(x)[(0,) * len(games)], self) if games else self
        which = f" of {' x '.join(map(str, games))} games, the first" if games else ""
        sums = f"return {one.episode_return * UNIT:g} after {one.episode_length} actions"
        return f"EnvState{which}: {sums}\n{text.summary(one.to_engine())}"

    @with_jax_defaults
    def to_engine(self) -> engine.State:
        """Converts the game to a state of the Python engine.

        Raises:
            ValueError: there are several games in the state.
        """
        if games := np.shape(self.episode_length):
            raise ValueError(
                f"the state holds {' x '.join(map(str, games))} games; take one of them, such as "
                "jax.tree.map(lambda x: x[0], state)"
            )
        if isinstance(self.game, State):
            return state_to_engine(self.game)
        from hackmatrix.game.native.conversion import game_to_engine

        return game_to_engine(np.asarray(self.game.states), np.asarray(self.game.saved))

    def _repr_html_(self) -> str | None:
        """The picture of one game, for notebooks."""
        if not _has_values(self) or self.episode_length.shape:
            return None
        return draw(self)


def _has_values(tree: Any) -> bool:
    """Whether every leaf is an array whose values can be read: not traced, donated or remote."""
    return all(_has_value(leaf) for leaf in jax.tree.leaves(tree))


def _has_value(leaf: Any) -> bool:
    if isinstance(leaf, jax.Array):
        is_traced = isinstance(leaf, jax.core.Tracer)
        return not is_traced and not leaf.is_deleted() and leaf.is_fully_addressable
    return isinstance(leaf, np.ndarray | np.generic)


def _describe(leaf: Any) -> str:
    """An array by dtype and shape, such as int32[16]."""
    if not hasattr(leaf, "dtype"):
        return repr(leaf)
    return f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"
