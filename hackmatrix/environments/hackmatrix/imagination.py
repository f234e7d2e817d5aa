"""HackMatrix as its player imagines it; see docs/planning.md for what is made up, and how."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.game.engine.observation import observe_saved
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.observation import RECORD_SIZE, number_of
from hackmatrix.game.rules.programs import MAX_SAVED_STATES

# --- A player's memory: the observations to which UNDO would lead back ----------------------------
#
# An observation tells how many positions are saved for UNDO, and not which. But the player has
# seen
# each of them, at the end of the enemy turn that saved it; which of its past observations they are
# follows from the observations alone.


Array = jax.Array


class UndoMemory(NamedTuple):
    """The memory of N players, each from the first observation of its game on."""

    records: Array  # uint8[N, 4, RECORD_SIZE], the newest last; the first 4 - saved are meaningless
    saved: Array  # int32[N], positions that were saved when the player last looked

    @classmethod
    def empty(cls, games: int) -> "UndoMemory":
        """Of players who have seen nothing yet."""
        records = jnp.zeros((games, MAX_SAVED_STATES, RECORD_SIZE), jnp.uint8)
        return cls(records, jnp.zeros(games, jnp.int32))

    @classmethod
    def of(cls, state: State) -> "UndoMemory":
        """Of one player, who has seen the whole game that has come to this state."""
        return cls.of_records(observe_saved(state))

    @classmethod
    def of_records(cls, saved: Sequence[bytes]) -> "UndoMemory":
        """Of one player: at most 4 records to which UNDO would lead back, oldest first."""
        unused = [bytes(RECORD_SIZE)] * (MAX_SAVED_STATES - len(saved))
        rows = np.array([np.frombuffer(record, np.uint8) for record in (*unused, *saved)])
        return cls(jnp.asarray(rows)[None], jnp.array([len(saved)], jnp.int32))

    def after(self, records: Array) -> "UndoMemory":
        """The memories after the games' next observations, uint8[N, RECORD_SIZE]."""
        saved, turn = number_of(records, "saved"), number_of(records, "turn")
        # With 4 positions a new one displaces the oldest; then only the turn tells.
        full = (saved == MAX_SAVED_STATES) & (self.saved == MAX_SAVED_STATES)
        is_new = (saved > self.saved) | (full & (turn > number_of(self.records[:, -1], "turn")))
        pushed = jnp.concatenate([self.records[:, 1:], records[:, None]], axis=1)
        popped = jnp.roll(self.records, 1, axis=1)
        kept = jnp.where((saved < self.saved)[:, None, None], popped, self.records)
        return UndoMemory(jnp.where(is_new[:, None, None], pushed, kept), saved)


# --- HackMatrix as its player imagines it; see docs/planning.md for what is made up, and how ------


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
