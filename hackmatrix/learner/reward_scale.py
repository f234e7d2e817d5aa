"""Scales rewards by the size of returns: one learning rate suits small and large rewards."""

import jax
import jax.numpy as jnp
from flax import struct

Array = jax.Array


class RewardScale(struct.PyTreeNode):
    """Running root mean square of the discounted return since the episode's start, over all steps.

    As in Engstrom et al. 2020 (https://arxiv.org/abs/2005.12729), but the deviation is measured
    from zero, not from the mean: rewards are divided, never shifted, so it is the size of the
    returns that has to become about 1. (A game that always pays the same has the standard deviation
    0.)
    """

    mean_square: Array  # float32[]
    count: Array  # float32[], steps seen

    @classmethod
    def create(cls) -> "RewardScale":
        """The scale before any step: rewards are divided by 1."""
        return cls(mean_square=jnp.zeros(()), count=jnp.zeros(()))

    def updated(self, sum_of_squares: Array, count: int) -> "RewardScale":
        """The scale after `count` more steps with this sum of squared discounted returns."""
        total = self.count + count
        gain = (sum_of_squares / count - self.mean_square) * (count / total)
        return RewardScale(mean_square=self.mean_square + gain, count=total)

    @property
    def deviation(self) -> Array:
        """The number that rewards are divided by, float32[]; 1 as long as all rewards were 0."""
        return jnp.where(self.mean_square == 0, 1.0, jnp.sqrt(self.mean_square))
