"""An agent: a network that reads an environment's compact observations."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from hackmatrix.agents.sparse import SparseFeatures
from hackmatrix.interface.environment import Environment, PyTree

Array = jax.Array


class Agent:
    """Logits and values of observations. The one place where features are made for a network."""

    def __init__(self, env: Environment, network: nn.Module) -> None:
        self.num_actions = env.num_actions
        self._feature_size = env.feature_size
        self.features = _features(env)
        self._apply: Callable[..., Any] = network.apply
        self._network = network

    def init(self, key: Array) -> PyTree:
        """Fresh params, `{"params": {"Dense_0": ...}}`."""
        return self._network.init(key, jnp.zeros((1, self._feature_size)))

    def __call__(self, params: PyTree, observations: PyTree) -> tuple[Array, Array]:
        """Logits float32[B, A] and values float32[B] of B observations."""
        output: tuple[Array, Array] = self._apply(params, self.features(observations))
        return output


def _features(env: Environment) -> Callable[[PyTree], Array | SparseFeatures]:
    """Features of B observations, in the form that is fastest here."""
    table = getattr(env, "feature_rows", None)
    if table is None or jax.default_backend() != "cpu":
        return jax.vmap(env.features)
    split = jax.vmap(table)

    def sparse_features(observations: PyTree) -> SparseFeatures:
        dense, rows = split(observations)
        return SparseFeatures.create(dense, rows, table)

    return sparse_features
