"""A player's memory: the observations to which UNDO would lead back.

An observation tells how many positions are saved for UNDO, and not which. But the player has seen
each of them, at the end of the enemy turn that saved it; which of its past observations they are
follows from the observations alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.engine.observation import observe_saved
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.observation import RECORD_SIZE, number_of
from hackmatrix.game.rules.programs import MAX_SAVED_STATES

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
