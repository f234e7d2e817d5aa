"""Minibatches from fixed groups of games, each shuffled by itself.

A device can shuffle its own groups without knowing the others, and every minibatch holds the same
transitions however many devices share the groups.
"""

import jax
import jax.numpy as jnp

from hackmatrix.learner.keys import Purpose, keys_for

Array = jax.Array

_NUMBER_BITS = 12  # of a word that is sorted: the other 20 are random


def minibatch_indices(
    seed: Array,
    update: Array,
    epoch: Array,
    *,
    num_steps: int,
    num_envs: int,
    num_minibatches: int,
    groups: int,
    first_group: Array,
) -> Array:
    """int32[M, B/M]: for each minibatch the transitions `step * num_envs + game`, each used once.

    Of the `num_envs` games of this device, in `groups` groups of which `first_group` is the first:
    group g holds the games g * N/G .. (g+1) * N/G - 1; its permutation follows from (seed, update,
    epoch, g), and each minibatch takes the same number of transitions from every group.
    """
    width = num_envs // groups
    numbers = jnp.arange(groups)
    keys = keys_for(seed, Purpose.SHUFFLE, update, epoch, each=first_group + numbers)
    place = jax.vmap(lambda key: _permutation(key, num_steps * width))(keys)
    game = numbers[:, None] * width + place % width
    index = place // width * num_envs + game
    shares = index.reshape(groups, num_minibatches, -1)
    return shares.swapaxes(0, 1).reshape(num_minibatches, -1)


def _permutation(key: Array, size: int) -> Array:
    """int32[size]: the numbers below `size`, shuffled by one sort of random bits.

    On CPU a sort of single words takes a tenth of the time of `jax.random.permutation`, which sorts
    pairs, and twice: so the number is the low end of the word where it fits. Equal random bits,
    some eight pairs in 4,096, leave their two numbers in order.
    """
    random, number = jax.random.bits(key, (size,)), jnp.arange(size, dtype=jnp.uint32)
    if size > 2**_NUMBER_BITS:
        return jnp.argsort(random).astype(jnp.int32)
    words = jnp.sort(random >> _NUMBER_BITS << _NUMBER_BITS | number)
    return (words & (2**_NUMBER_BITS - 1)).astype(jnp.int32)
