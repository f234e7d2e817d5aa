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
    0.) An environment with K tasks has a scale for each.
    """

    mean_square: Array  # float32[] or float32[K]
    count: Array  # likewise, steps seen

    @classmethod
    def create(cls, tasks: int | None = None) -> "RewardScale":
        """The scale before any step: rewards are divided by 1."""
        shape = () if tasks is None else (tasks,)
        return cls(mean_square=jnp.zeros(shape), count=jnp.zeros(shape))

    def updated(self, sum_of_squares: Array, count: int | Array) -> "RewardScale":
        """The scale after `count` more steps with this sum of squared discounted returns."""
        total = self.count + count
        gain = (sum_of_squares / count - self.mean_square) * (count / total)
        return RewardScale(mean_square=self.mean_square + gain, count=total)

    @property
    def deviation(self) -> Array:
        """The divisor of rewards, float32[] or [K]; 1 as long as all of them were 0."""
        return jnp.where(self.mean_square == 0, 1.0, jnp.sqrt(self.mean_square))
