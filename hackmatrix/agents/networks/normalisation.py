"""Normalises features to running mean 0 and deviation 1 by changing the network's first layer.

The features themselves stay as they are: ((x - mean) / deviation) @ W is x times a scaled W, plus a
bias. So params can be exported with the normalisation folded in, and sums of table rows
(`agents/networks/sparse.py`) need no change.

With several tasks, the features of each are normalised over its own observations, and the shift by
their means is a vector of the task: it is added to the rows of the features that say which it is.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members

Array = jax.Array

FIRST_LAYER = "Dense_0"
EPSILON = 1e-4  # added to variances: a feature that never changes is divided by 0.01


class FeatureScale(struct.PyTreeNode):
    """Running mean and variance of F features, over all observations so far."""

    count: Array  # float32[]; with K tasks float32[F], of the observations that have the feature
    mean: Array  # float32[F]
    variance: Array  # float32[F]
    owners: Array | None = None  # float32[K, F], see `Environment`; None if there is one task

    @classmethod
    def create(cls, size: int, owners: Any = None) -> "FeatureScale":
        """The scale before any observation: changes nothing."""
        return cls(
            count=jnp.zeros(() if owners is None else size),
            mean=jnp.zeros(size),
            variance=jnp.ones(size),
            owners=None if owners is None else jnp.asarray(owners),
        )

    def feature_counts(self, of_tasks: Any) -> Any:
        """The count of each feature, [..., F], given that of each task, [..., K].

        Without tasks all count the same: as much as is given, or 1.
        """
        if self.owners is None:
            return 1 if of_tasks is None else of_tasks
        return jnp.sum(of_tasks[..., None] * self.owners, axis=-2)

    def update(self, sums: Array, squares: Array, count: int | Array) -> "FeatureScale":
        """The scale after `count` more observations.

        Args:
            sums: float32[F], sum of the features minus the current mean.
            squares: float32[F], sum of the squares of those differences.
            count: number of new observations; of each feature, if there are tasks.
        """
        total = self.count + count
        divisor, one = jnp.maximum(total, 1), jnp.maximum(count, 1)  # some may never count
        share = count / divisor
        shift = sums / one  # mean of the new observations minus the current mean
        new_variance = jnp.maximum(squares / one - shift**2, 0.0)
        variance = jnp.where(self.count > 0, self.variance, 0.0)
        return FeatureScale(
            count=total,
            mean=self.mean + shift * share,
            variance=variance
            + (new_variance - variance) * share
            + shift**2 * share * (self.count / divisor),
            owners=self.owners,
        )

    def fold(self, params: PyTree) -> PyTree:
        """Params that give, on raw features, the outputs that `params` give on normalised ones."""
        scale = jnp.where(self.count > 0, jax.lax.rsqrt(self.variance + EPSILON), 1.0)
        layers = params["params"]
        kernel = layers[FIRST_LAYER]["kernel"] * scale[:, None]
        bias = layers[FIRST_LAYER]["bias"]
        if self.owners is None:
            bias = bias - self.mean @ kernel
        else:
            tasks = len(self.owners)
            kernel = kernel.at[-tasks:].add(-(self.owners * self.mean) @ kernel)
        return {"params": {**layers, FIRST_LAYER: {"kernel": kernel, "bias": bias}}}


def dense_features(env: Environment, read: PyTree) -> Array:
    """float32[B, F]: the features of B observations as rollouts store them."""
    integers = optional_members(env).feature_integers
    if integers is None:
        return jax.vmap(env.features)(read)
    features: Array = read.astype(jnp.float32) * integers.scales
    return features
