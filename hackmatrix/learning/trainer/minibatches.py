"""Minibatches drawn from fixed groups of games, each group shuffled separately.

A device can shuffle its own groups without knowing the others, and every minibatch holds the same
transitions however many devices share the groups.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.learning.trainer.config import AlgorithmConfig
from hackmatrix.learning.trainer.keys import Purpose, UpdateKeys

Array = jax.Array

_NUMBER_BITS = 12  # low bits of a sorted word that hold the number: the other 20 are random


class Shares(NamedTuple):
    """The division of the samples of this device's games into minibatches.

    A sample is one transition, with the index `step * num_envs + game`. For a recurrent network it
    is a whole sequence of a game, as if every game had one step.
    """

    num_steps: int
    num_envs: int  # games of this device
    num_groups: int  # of games of this device; see `AlgorithmConfig`
    num_minibatches: int

    @classmethod
    def of(cls, config: AlgorithmConfig, num_envs: int, *, recurrent: bool) -> "Shares":
        """The shares of a device that has `num_envs` of the games."""
        num_steps = 1 if recurrent else config.num_steps
        groups = config.num_groups(recurrent=recurrent)
        return cls(
            num_steps, num_envs, groups * num_envs // config.num_envs, config.num_minibatches
        )


def minibatch_indices(keys: UpdateKeys, epoch: Array, shares: Shares, first_group: Array) -> Array:
    """Sample indices of each minibatch, int32[M, B/M]; each sample is used once an epoch.

    Every minibatch takes the same number of samples from every group.

    Args:
        keys: random keys of the update.
        epoch: int32[].
        shares: how this device's samples are divided.
        first_group: int32[], index of this device's first group among all groups.
    """
    num_steps, num_envs, groups, num_minibatches = shares
    width = num_envs // groups
    shuffle = keys.many(Purpose.SHUFFLE, epoch, indices=first_group + jnp.arange(groups))
    place = jax.vmap(_permutation, in_axes=(0, None))(shuffle, num_steps * width)
    game = jnp.arange(groups)[:, None] * width + place % width
    index = place // width * num_envs + game
    parts = index.reshape(groups, num_minibatches, -1)
    return parts.swapaxes(0, 1).reshape(num_minibatches, -1)


def _permutation(key: Array, size: int) -> Array:
    """The numbers below `size` in random order, int32[size], by one sort of random bits.

    On CPU, sorting single words takes a tenth of the time of `jax.random.permutation`, which sorts
    key-value pairs, and does so twice. So the number is packed into the low bits of the random word
    where it fits. Ties of the random bits, about eight pairs in 4,096, keep their two numbers in
    order.
    """
    random, number = jax.random.bits(key, (size,)), jnp.arange(size, dtype=jnp.uint32)
    if size > 2**_NUMBER_BITS:
        return jnp.argsort(random).astype(jnp.int32)
    words = jnp.sort(random >> _NUMBER_BITS << _NUMBER_BITS | number)
    return (words & (2**_NUMBER_BITS - 1)).astype(jnp.int32)
