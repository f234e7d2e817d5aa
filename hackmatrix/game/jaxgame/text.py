"""Converts states of this engine to and from the text form of a position (`docs/positions.md`)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.engine import text
from hackmatrix.game.jaxgame.conversion import state_from_engine, state_to_engine
from hackmatrix.game.jaxgame.state import State


def state_to_text(state: State) -> str:
    """The complete state of one game; `state_from_text` reads it back exactly.

    Raises:
        ValueError: there are several games in the state.
    """
    return text.state_to_text(state_to_engine(state))


def state_from_text(drawn: str) -> State:
    """Reads a position in text form.

    Raises:
        IllegalStateError: the state is not legal; the message names the line or the field.
    """
    return jax.tree.map(jnp.asarray, state_from_engine(text.state_from_text(drawn)))


def summary(state: State) -> str:
    """The board, and the numbers of the game and of the player, of one game."""
    return text.summary(state_to_engine(state))


def has_values(tree: Any) -> bool:
    """Whether every leaf is an array whose values can be read: not traced, donated or remote."""
    return all(_has_values(leaf) for leaf in jax.tree.leaves(tree))


def _has_values(leaf: Any) -> bool:
    if isinstance(leaf, jax.Array):
        is_traced = isinstance(leaf, jax.core.Tracer)
        return not is_traced and not leaf.is_deleted() and leaf.is_fully_addressable
    return isinstance(leaf, np.ndarray | np.generic)
