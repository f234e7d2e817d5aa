"""Policies that cost almost nothing compared to a step of the game: they use bits and bytes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.game.jaxgame.bitboard import nth_bit
from hackmatrix.game.jaxgame.dice import draw, to_range
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import NEIGHBOUR
from hackmatrix.game.rules.observation import BYTE, FIELD, RESOURCE

Array = jax.Array

_NEIGHBOURS = np.array([[-1 if c is None else c for c in row] for row in NEIGHBOUR], np.int32)
_FAR = 99  # larger than any walking distance
_STRAYS = 8  # one in 8 actions of a walker is random, so that programs are run too


def random_words(games: Array, run: Array, step: Array) -> Array:
    """A random word for each game at each step, uint32[n], by the hash function of the dice."""
    return draw(games.astype(jnp.uint32), run, step, 0, 0)


def random_actions(bits: Array, random_bits: Array) -> Array:
    """Uniformly random valid actions, int32[n].

    Args:
        bits: uint32[n], the valid actions, at least one.
        random_bits: uint32[n], random words.
    """
    return nth_bit(bits, to_range(random_bits, lax.population_count(bits)))


def walks_to_exit(observations: Array, bits: Array, random_bits: Array) -> Array:
    """int32[n]: usually the direction that leads nearest to the exit, else a random valid action.

    Args:
        observations: uint8[n, RECORD_SIZE].
        bits: uint32[n], the valid actions, at least one.
        random_bits: uint32[n], random words.
    """
    cells = jnp.asarray(_NEIGHBOURS)[observations[:, BYTE["cell"]]]  # int32[n, 4]
    there = jnp.take_along_axis(observations, RESOURCE + jnp.maximum(cells, 0), axis=1)
    valid = (bits[:, None] >> np.arange(NUM_DIRECTIONS, dtype=np.uint32)) & 1 == 1
    distance = jnp.where(valid, FIELD["exit_distance"].of(there).astype(jnp.int32), _FAR)
    walks = valid.any(axis=1) & (random_bits % _STRAYS != 0)
    return jnp.where(walks, jnp.argmin(distance, axis=1), random_actions(bits, random_bits))
