"""Normalises features to running mean 0 and deviation 1 by changing the network's first layer.

The features themselves stay as they are: ((x - mean) / deviation) @ W is x times a scaled W, plus a
bias. So params can be exported with the normalisation folded in, and sums of table rows
(`agents/sparse.py`) need no change.
"""

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.interface.environment import Environment, PyTree

Array = jax.Array

FIRST_LAYER = "Dense_0"
EPSILON = 1e-4  # added to variances: a feature that never changes is divided by 0.01


class FeatureScale(struct.PyTreeNode):
    """Running mean and variance of F features, over all observations so far."""

    count: Array  # float32[]
    mean: Array  # float32[F]
    variance: Array  # float32[F]

    @classmethod
    def create(cls, size: int) -> "FeatureScale":
        """The scale before any observation: changes nothing."""
        return cls(count=jnp.zeros(()), mean=jnp.zeros(size), variance=jnp.ones(size))

    def updated(self, sums: Array, squares: Array, count: int) -> "FeatureScale":
        """The scale after `count` more observations.

        Args:
            sums: float32[F], sum of the features minus the current mean.
            squares: float32[F], sum of the squares of those differences.
            count: number of new observations.
        """
        total = self.count + count
        share = count / total
        shift = sums / count  # mean of the new observations minus the current mean
        new_variance = jnp.maximum(squares / count - shift**2, 0.0)
        variance = jnp.where(self.count > 0, self.variance, 0.0)
        return FeatureScale(
            count=total,
            mean=self.mean + shift * share,
            variance=variance
            + (new_variance - variance) * share
            + shift**2 * share * (self.count / total),
        )

    def folded(self, params: PyTree) -> PyTree:
        """Params that give, on raw features, the outputs that `params` give on normalised ones."""
        scale = jnp.where(self.count > 0, jax.lax.rsqrt(self.variance + EPSILON), 1.0)
        layers = params["params"]
        kernel = layers[FIRST_LAYER]["kernel"] * scale[:, None]
        bias = layers[FIRST_LAYER]["bias"] - self.mean @ kernel
        return {"params": {**layers, FIRST_LAYER: {"kernel": kernel, "bias": bias}}}


def dense_features(env: Environment, read: PyTree) -> Array:
    """float32[B, F]: the features of B observations as rollouts store them."""
    integers = getattr(env, "feature_integers", None)
    if integers is None:
        return jax.vmap(env.features)(read)
    features: Array = read.astype(jnp.float32) * integers.scales
    return features
