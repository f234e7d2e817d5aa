"""Rewards in units of the size of returns: one learning rate suits -10 and several thousand."""

import jax
import jax.numpy as jnp
from flax import struct

Array = jax.Array


class RewardScale(struct.PyTreeNode):
    """Running deviation of the discounted return since the episode's start, over all steps so far.

    As in Engstrom et al. 2020 (https://arxiv.org/abs/2005.12729), but the deviation is taken from
    zero, not from the mean: rewards are divided, never shifted, so what has to become about 1 is
    the size of the returns. (A game that always pays the same has the standard deviation 0.)
    """

    mean_square: Array  # float32[]
    count: Array  # float32[], steps seen

    @classmethod
    def create(cls) -> "RewardScale":
        """Of no steps: divides by 1."""
        return cls(mean_square=jnp.zeros(()), count=jnp.zeros(()))

    def updated(self, sum_of_squares: Array, count: int) -> "RewardScale":
        """With `count` more steps, whose squared discounted returns add up to `sum_of_squares`."""
        total = self.count + count
        gain = (sum_of_squares / count - self.mean_square) * (count / total)
        return RewardScale(mean_square=self.mean_square + gain, count=total)

    @property
    def deviation(self) -> Array:
        """float32[], what rewards are divided by; 1 while there was no reward."""
        return jnp.where(self.mean_square == 0, 1.0, jnp.sqrt(self.mean_square))
