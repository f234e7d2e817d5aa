"""HackMatrix as its player imagines it; see docs/planning.md for what is made up, and how."""

from typing import Any

import jax
import jax.numpy as jnp

from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.environments.hackmatrix.undo_history import UndoMemory

Array = jax.Array


@with_jax_defaults
class ImaginedGames:
    """Games that fit the compact records seen so far; see `Imagination`."""

    def __init__(self, env: Any) -> None:
        """Games that are played as a `HackMatrixEnv` without auto-reset plays them."""
        self.env = env

    def begin(self, num_games: int) -> UndoMemory:
        """The memory of players who have seen nothing yet."""
        return UndoMemory.empty(num_games)

    def after(self, memory: UndoMemory, observations: Array) -> UndoMemory:
        """The memory after the next records, uint8[N, RECORD_SIZE]."""
        return memory.after(observations)

    def imagine(
        self, memory: UndoMemory, observations: Array, which: Array, seeds: Array, worlds: Array
    ) -> EnvState:
        """States of L games, with hidden facts and dice of their own."""
        observed = observations[which], memory.records[which], memory.saved[which]
        zero = jnp.zeros(which.shape, jnp.int32)
        games = self.env.games.imagine(*observed, seeds[which], worlds)
        return EnvState(games, episode_return=zero, episode_length=zero)

    def step(self, states: EnvState, actions: Array) -> tuple[Array, EnvState, Array, Array]:
        """Takes actions int32[L]."""
        stepped = jax.vmap(self.env.step, (None, 0, 0))(None, states, actions)
        observations, states, rewards, ended, *_ = stepped
        return observations, states, rewards, ended

    def valid(self, states: EnvState) -> Array:
        """bool[L, 28], the valid actions."""
        masks: Array = jax.vmap(self.env.action_mask)(states)
        return masks
