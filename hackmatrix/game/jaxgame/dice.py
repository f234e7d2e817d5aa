"""Randomness: the same pure function as in `game/engine/dice.py`, on uint32 arrays."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.rules.chance import Site


def draw(
    stream: jax.Array, episode: jax.Array, clock: jax.Array, site: int, index: jax.typing.ArrayLike
) -> jax.Array:
    """One uniform uint32 for a random draw of a game; all arguments broadcast."""
    key = jnp.uint32(site << 16) | jnp.asarray(index).astype(jnp.uint32)
    words = (stream, episode, clock, key)
    mixed = _mix(*(word * jnp.uint32(1664525) + jnp.uint32(1013904223) for word in words))
    return _mix(*(word ^ (word >> 16) for word in mixed))[3]


def _mix(
    x: jax.Array, y: jax.Array, z: jax.Array, w: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    x = x + y * w
    y = y + z * x
    z = z + x * y
    w = w + y * z
    return x, y, z, w


def to_range(word: jax.Array, n: jax.Array | int) -> jax.Array:
    """int32 0..n-1, n < 65536: the high word of the product, in 32 bits."""
    n = jnp.asarray(n).astype(jnp.uint32)
    low = ((word & 0xFFFF) * n) >> 16
    return (((word >> 16) * n + low) >> 16).astype(jnp.int32)


class Dice(NamedTuple):
    """The dice of a game."""

    stream: jax.Array  # uint32, names the game together with `episode`
    episode: jax.Array  # uint32, number of the game in its stream
    clock: jax.Array  # uint32, valid actions taken so far

    def choose(
        self, site: Site, options: jax.Array | int, index: jax.typing.ArrayLike = 0
    ) -> jax.Array:
        """int32: index of one of several equally likely options, in the order of `Site`.

        Args:
            site: the kind of draw.
            options: int32, number of options, 1..65535 (the Python engine takes the options).
            index: int32, counts the draws of this site; an array makes as many draws.
        """
        return to_range(draw(self.stream, self.episode, self.clock, site, index), options)
