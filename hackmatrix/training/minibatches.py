"""Minibatches from fixed groups of games, each shuffled by itself.

A device can shuffle its own groups without knowing the others, and every minibatch holds the same
transitions however many devices share the groups.
"""

import jax
import jax.numpy as jnp

from hackmatrix.training.keys import Purpose, keys_for

Array = jax.Array

MAX_GROUPS = 64


def num_groups(num_envs: int, num_steps: int, num_minibatches: int) -> int:
    """The most groups, at most 64, that divide the games and give each minibatch an equal share."""
    return next(
        groups
        for groups in range(min(MAX_GROUPS, num_envs), 0, -1)
        if num_envs % groups == 0 and num_steps * (num_envs // groups) % num_minibatches == 0
    )


def minibatch_indices(
    seed: Array,
    update: Array,
    epoch: Array,
    *,
    num_steps: int,
    num_envs: int,
    num_minibatches: int,
) -> Array:
    """int32[M, B/M]: for each minibatch the transitions `step * num_envs + game`, each used once.

    Group g holds the games g * N/G .. (g+1) * N/G - 1; its permutation follows from (seed, update,
    epoch, g), and each minibatch takes the same number of transitions from every group.
    """
    groups = num_groups(num_envs, num_steps, num_minibatches)
    width = num_envs // groups
    keys = keys_for(seed, Purpose.SHUFFLE, update, epoch, each=jnp.arange(groups))
    place = jax.vmap(lambda key: jax.random.permutation(key, num_steps * width))(keys)
    game = jnp.arange(groups)[:, None] * width + place % width
    index = place // width * num_envs + game
    shares = index.reshape(groups, num_minibatches, -1)
    return shares.swapaxes(0, 1).reshape(num_minibatches, -1)
