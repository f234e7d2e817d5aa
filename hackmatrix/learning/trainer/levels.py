"""Rises through the levels of an environment, by the results of the games that begin at each."""

from typing import Self

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.environments.interface.environment import Levels

Array = jax.Array


class LevelProgress(struct.PyTreeNode):
    """An agent's level, and the results there that have been counted so far."""

    level: Array  # int32[], from 0
    total: Array  # float32[], sum of the results
    games: Array  # float32[], their number

    @classmethod
    def create(cls, levels: Levels) -> Self:
        """At the start of a run."""
        return cls(jnp.int32(levels.first), jnp.zeros(()), jnp.zeros(()))

    def updated(self, levels: Levels, results: Array) -> Self:
        """After an update; once enough games are counted they decide, and counting begins anew.

        Args:
            levels: what the results have to reach.
            results: float32[2], sum and number of the results of the update's games.
        """
        total, games = self.total + results[0], self.games + results[1]
        decides = games >= jnp.asarray(levels.games)[self.level]
        passed = decides & (total >= games * jnp.asarray(levels.at_least)[self.level])
        return self.replace(
            level=self.level + passed,
            total=jnp.where(decides, 0.0, total),
            games=jnp.where(decides, 0.0, games),
        )
