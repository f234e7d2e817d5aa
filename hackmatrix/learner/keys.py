"""Random keys, each made from the run's seed, what it is for, and counters; none is carried along.

So a number depends neither on what was drawn before nor on how the work was cut into calls.
"""

from enum import IntEnum
from typing import NamedTuple

import jax
from jax.typing import ArrayLike

Array = jax.Array


class Purpose(IntEnum):
    """What a key is for. The numbers are part of a run's meaning: never change or reuse one."""

    PARAMS = 0
    RESET = 1  # update, game
    ACTION = 2  # update, step, game
    ENVIRONMENT = 3  # update, step, game
    SHUFFLE = 4  # update, epoch, group
    EVALUATION_RESET = 5  # game
    EVALUATION_ACTION = 6  # step, game
    EVALUATION_STEP = 7  # step, game


def key_for(seed: ArrayLike, purpose: Purpose, *counters: ArrayLike) -> Array:
    """The key of `seed`, `purpose` and `counters`: integers, which may be traced."""
    key = jax.random.key(seed, impl="threefry2x32")  # the default may be one that vmap changes
    for counter in (purpose, *counters):
        key = jax.random.fold_in(key, counter)
    return key


def keys_for(seed: ArrayLike, purpose: Purpose, *counters: ArrayLike, each: Array) -> Array:
    """Keys [N], one for each last counter in `each`: int[N]."""
    return jax.vmap(lambda key, n: jax.random.fold_in(key, n), in_axes=(None, 0))(
        key_for(seed, purpose, *counters), each
    )


class UpdateKeys(NamedTuple):
    """The random keys of one update of a run."""

    seed: Array  # uint32[], of the run
    update: Array  # int32[], updates made before

    def one(self, purpose: Purpose, *counters: ArrayLike) -> Array:
        """The key of this purpose and these counters."""
        return key_for(self.seed, purpose, self.update, *counters)

    def many(self, purpose: Purpose, *counters: ArrayLike, each: Array) -> Array:
        """Keys [N], one for each last counter in `each`: int[N]."""
        return keys_for(self.seed, purpose, self.update, *counters, each=each)
