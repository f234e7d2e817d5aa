"""Random keys, derived from the run's seed, a purpose and counters; none is carried along.

So a random number depends neither on what was drawn before nor on how the work was cut into calls.
"""

from enum import IntEnum
from typing import NamedTuple

import jax
from jax.typing import ArrayLike

Array = jax.Array


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
