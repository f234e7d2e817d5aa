"""Features with running mean 0 and deviation 1, as a change of the network's first layer.

The network never sees other features: (x - mean) / deviation times a matrix is x times a scaled
matrix, and another bias. So params can be exported with the normalisation in them, and sums of
table rows (`agents/sparse.py`) stay what they are.
"""

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.interface.environment import PyTree

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
        """Of no observations: changes nothing."""
        return cls(count=jnp.zeros(()), mean=jnp.zeros(size), variance=jnp.ones(size))

    def updated(self, sums: Array, squares: Array, count: int) -> "FeatureScale":
        """With `count` more observations.

        Args:
            sums: float32[F], of features less the mean so far.
            squares: float32[F], of the squares of the same.
            count: observations.
        """
        total = self.count + count
        share = count / total
        shift = sums / count  # of the new mean from the one so far
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
        """The params of a network that reads features as they are and answers the same."""
        scale = jnp.where(self.count > 0, jax.lax.rsqrt(self.variance + EPSILON), 1.0)
        layers = params["params"]
        kernel = layers[FIRST_LAYER]["kernel"] * scale[:, None]
        bias = layers[FIRST_LAYER]["bias"] - self.mean @ kernel
        return {"params": {**layers, FIRST_LAYER: {"kernel": kernel, "bias": bias}}}
