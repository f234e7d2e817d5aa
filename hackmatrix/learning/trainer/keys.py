"""Random keys, from a seed, a purpose and counters; several agents, each with a seed."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

Array = jax.Array
Tree = Any
OverAgents = Callable[[Callable[[Tree], Tree]], Callable[[Tree], Tree]]


class Purpose(IntEnum):
    """The purpose of a key. The numbers define a run's randomness: never change or reuse one."""

    PARAMS = 0
    RESET = 1  # update, game
    ACTION = 2  # update, step, game
    ENVIRONMENT = 3  # update, step, game
    SHUFFLE = 4  # update, epoch, group
    EVALUATION_RESET = 5  # game
    EVALUATION_ACTION = 6  # step, game
    EVALUATION_STEP = 7  # step, game
    DATA_RESET = 8  # game
    DATA_ACTION = 9  # step, game
    DATA_STEP = 10  # step, game
    SEARCH = 11  # update, step, game


def key_for(seed: ArrayLike, purpose: Purpose, *counters: ArrayLike) -> Array:
    """The key derived from `seed`, `purpose` and `counters`: integers, which may be traced."""
    key = jax.random.key(seed, impl="threefry2x32")  # the default may be one that vmap changes
    for counter in (purpose, *counters):
        key = jax.random.fold_in(key, counter)
    return key


def keys_for(seed: ArrayLike, purpose: Purpose, *counters: ArrayLike, indices: Array) -> Array:
    """N keys, one for each last counter in `indices`: int[N]."""
    return jax.vmap(lambda key, n: jax.random.fold_in(key, n), in_axes=(None, 0))(
        key_for(seed, purpose, *counters), indices
    )


class UpdateKeys(NamedTuple):
    """Derives the random keys of one update of a run."""

    seed: Array  # uint32[], of the run
    update: Array  # int32[], updates made before

    def one(self, purpose: Purpose, *counters: ArrayLike) -> Array:
        """The key for this purpose and these counters."""
        return key_for(self.seed, purpose, self.update, *counters)

    def many(self, purpose: Purpose, *counters: ArrayLike, indices: Array) -> Array:
        """N keys for this purpose, one for each last counter in `indices`: int[N]."""
        return keys_for(self.seed, purpose, self.update, *counters, indices=indices)


def one_by_one(rule: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """Maps a function of one agent over many by `lax.map`: runs one agent after another."""
    return lambda agents: jax.lax.map(rule, agents)


def side_by_side(rule: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """Maps a function of one agent over many by `vmap`: all in one batch."""
    return jax.vmap(rule)


def fastest(platform: str) -> OverAgents:
    """`one_by_one` on CPU, where batches of small products are slow; see docs/performance.md."""
    return one_by_one if platform == "cpu" else side_by_side


def split(tree: Tree, count: int) -> list[Tree]:
    """Splits the tree of `count` agents (NumPy arrays) into one tree for each agent."""
    if count == 1:
        return [tree]
    return [jax.tree.map(lambda x, k=k: x[k], tree) for k in range(count)]


def are_finite(tree: Tree) -> bool:
    """Whether all numbers of a tree of arrays are finite."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))
