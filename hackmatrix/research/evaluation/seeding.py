"""Streams and episodes of the games of evaluations and of data sets, from seeds and numbers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.learning.trainer.keys import Purpose, key_for, keys_for

Array = jax.Array


class SeedFamily(NamedTuple):
    """Which games the seeds and numbers mean."""

    stream: int  # of seed 0, for environments whose games have streams
    reset: Purpose  # for others: of the keys of their starts
    action: Purpose
    step: Purpose

    def begin(self, env: Environment, seed: Array, episodes: Array) -> tuple[PyTree, PyTree]:
        """Observations and states of the games with these numbers [N], before the first action."""
        if (reset_game := optional_members(env).reset_game) is not None:
            stream = jnp.full(episodes.shape, jnp.uint32(self.stream) + seed)
            return jax.vmap(reset_game)(stream, episodes.astype(jnp.uint32))
        return jax.vmap(env.reset)(keys_for(seed, self.reset, indices=episodes))

    def step_keys(self, seed: Array, times: Array, episodes: Array) -> Array:
        """N keys, for the steps of the games after `times` [N] actions."""
        return _keys(seed, self.step, times, episodes)

    def action_keys(self, seed: Array, times: Array, episodes: Array) -> Array:
        """N keys, for the player's choices after `times` [N] actions."""
        return _keys(seed, self.action, times, episodes)


EVALUATION = SeedFamily(
    EVALUATION_STREAM, Purpose.EVALUATION_RESET, Purpose.EVALUATION_ACTION, Purpose.EVALUATION_STEP
)
DATA = SeedFamily(0, Purpose.DATA_RESET, Purpose.DATA_ACTION, Purpose.DATA_STEP)


def _keys(seed: Array, purpose: Purpose, times: Array, episodes: Array) -> Array:
    """N keys, for a step of each game."""
    return jax.vmap(lambda time, number: key_for(seed, purpose, time, number))(times, episodes)
