"""A feed-forward network that reads the feature vectors of an environment."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from hackmatrix.agents.networks.sparse import SparseFeatures
from hackmatrix.agents.networks.symmetry import Sums, Symmetry
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members

Array = jax.Array


@with_jax_defaults
class FeatureNetwork:
    """Applies a flax module to `Environment.features`; implements `Network`."""

    recurrent = False

    def __init__(
        self,
        env: Environment,
        module: nn.Module,
        *,
        reads_features: bool,
        symmetry: Symmetry | None = None,
    ) -> None:
        """Wraps `module` for the observations of `env`.

        Args:
            env: environment whose observations the network reads.
            module: maps features float32[B, F] to logits [B, A] and values [B].
            reads_features: whether the layer `Dense_0` alone reads the features. It is then given
                `SparseFeatures` where those are faster: on CPU. Whoever runs it on other devices
                than JAX's default ones makes it within `jax.default_device`.
            symmetry: what weights are shared.
        """
        self.num_actions = env.num_actions
        self.reads_features = reads_features
        self.module = module
        self.symmetry = symmetry
        self.sharing = None if symmetry is None else symmetry.sharing
        self.features = (
            _features(env, sparse=reads_features)
            if symmetry is None
            else _symmetric_features(env, symmetry)
        )
        integers = optional_members(env).feature_integers
        self._encode: Callable[[PyTree], Any] | None = (
            integers if integers is None or symmetry is None else symmetry.encode(integers)
        )
        self._feature_size = env.feature_size
        self._apply: Callable[..., Any] = module.apply

    def init(self, key: Array) -> PyTree:
        """Freshly initialised params, `{"params": {"Dense_0": ...}}`."""
        features = jnp.zeros((1, self._feature_size))
        if self.symmetry is None:
            return self.module.init(key, features)
        params = self.module.init(key, self.symmetry.features(features))
        return self.symmetry.sharing.share(params)

    def initial_carry(self, num_games: int) -> PyTree:
        """The empty tree: this network has no carry."""
        return ()

    def encode(self, observations: PyTree) -> PyTree:
        """The observations as features in small integers, where the environment offers them."""
        return observations if self._encode is None else jax.vmap(self._encode)(observations)

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        """Logits float32[B, A], values float32[B] of B encoded observations, and the carry."""
        logits, values = self._apply(params, self.features(observations))
        return logits, values, carry


def default_platform() -> str:
    """The platform on which JAX runs what is not told where."""
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else str(device.platform)


def _symmetric_features(env: Environment, symmetry: Symmetry) -> Callable[[PyTree], Sums]:
    """A function from B encoded observations to what a symmetric network reads."""
    if (integers := optional_members(env).feature_integers) is not None:
        return lambda parts: symmetry.encoded_sums(parts, integers.scales)
    return lambda observations: symmetry.features(jax.vmap(env.features)(observations))


def _features(env: Environment, *, sparse: bool) -> Callable[[PyTree], Array | SparseFeatures]:
    """A function from B encoded observations to features, in the platform's fastest form."""
    if (integers := optional_members(env).feature_integers) is not None:
        return lambda numbers: numbers.astype(jnp.float32) * integers.scales
    table = optional_members(env).feature_rows if sparse else None
    if table is None or default_platform() != "cpu":
        return jax.vmap(env.features)
    split = jax.vmap(table)

    def sparse_features(observations: PyTree) -> SparseFeatures:
        dense, rows = split(observations)
        return SparseFeatures.create(dense, rows, table)

    return sparse_features
