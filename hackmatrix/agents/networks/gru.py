"""The network `gru`: dense layers, then a unit that remembers the episode.

The gated recurrent unit of Cho et al. 2014 (https://arxiv.org/abs/1406.1078), with the reset gate
after the product, so that one product serves all gates:

    r, z = sigmoid(a_r + h W_r), sigmoid(a_z + h W_z)
    n = tanh(a_n + r * (h W_n))
    h' = (1 - z) * n + z * h

`a` is a dense layer of the trunk's output. The heads read the trunk's output beside h', so what a
position shows at once need not pass through the memory.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import Dense, orthogonal, trunk
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.networks.sparse import SparseFeatures, product
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.interface.environment import Environment, PyTree

Array = jax.Array

GATES = 3  # r, z and n


def make(env: Environment, config: NetworkConfig) -> Network:
    """A `GruNetwork` with the width, depth, activation and precision of `config`."""
    return GruNetwork(env, config)


@with_jax_defaults
class GruNetwork(FeatureNetwork):
    """Reads features, and has a carry float32[B, hidden_dim] that is 0 where an episode starts."""

    recurrent = True

    def __init__(self, env: Environment, config: NetworkConfig) -> None:
        super().__init__(env, Memory(env.num_actions, config), reads_features=True)
        self._size = config.hidden_dim

    def init(self, key: Array) -> PyTree:
        """Freshly initialised params."""
        nothing = jnp.zeros((1, self._feature_size))
        return self.module.init(key, nothing, jnp.zeros((1, 1), bool), self.initial_carry(1))

    def initial_carry(self, num_games: int) -> Array:
        """Zeros, float32[num_games, hidden_dim]."""
        return jnp.zeros((num_games, self._size))

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        """Logits float32[B, A], values float32[B] of B encoded observations, and the carry."""
        going_on = jnp.zeros((1, len(carry)), bool)
        logits, values, carry = self._apply(params, self.features(observations), going_on, carry)
        return logits, values, carry

    def unroll(
        self, params: PyTree, observations: PyTree, starts: Array, carry: PyTree
    ) -> tuple[Array, Array]:
        """Logits float32[T, B, A] and values float32[T, B]; see `agents.network.unroll`."""
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), observations)
        logits, values, _ = self._apply(params, self.features(flat), starts, carry)
        return logits.reshape(*starts.shape, -1), values.reshape(starts.shape)


class Memory(nn.Module):
    """The trunk of an `ActorCritic`, a gated recurrent unit and two heads.

    Its params are those of the trunk, then the layer to the gates, the heads of logits and value,
    and `memory`, the matrix from h to the gates.
    """

    num_actions: int
    config: NetworkConfig

    @nn.compact
    def __call__(
        self, features: Array | SparseFeatures, starts: Array, carry: Array
    ) -> tuple[Array, Array, Array]:
        """Logits float32[T * B, A], values float32[T * B] and the last carry float32[B, H].

        Args:
            features: float32[T * B, F], of T steps of B games.
            starts: bool[T, B], where the carry is set to 0 before the step.
            carry: float32[B, H], before the first step.
        """
        config = self.config
        size, dtype = config.hidden_dim, jnp.dtype(config.dtype)
        hidden = trunk(
            features,
            size,
            config.num_layers,
            dtype=dtype,
            activation=config.activation,
            layer_norm=config.layer_norm,
        )
        gates = Dense(GATES * size, 1.0, dtype)(hidden).reshape(*starts.shape, -1)
        kernel = self.param("memory", _orthogonal_gates, (size, GATES * size))

        def step(carry: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            gates, starting = now
            carry = jnp.where(starting[:, None], 0.0, carry)
            carry = _next_carry(gates, carry, kernel, dtype)
            return carry, carry

        carry, known = jax.lax.scan(step, carry, (gates, starts))
        both = jnp.concatenate([hidden, known.reshape(hidden.shape)], axis=-1)
        logits = Dense(self.num_actions, 0.01, dtype)(both)
        value = Dense(1, 1.0, dtype)(both)
        return logits, value[..., 0], carry


def _next_carry(gates: Array, carry: Array, kernel: Array, dtype: DTypeLike) -> Array:
    """The next carry, float32[B, H], of the gates' inputs float32[B, 3 H]."""
    r, z, n = jnp.split(gates, GATES, axis=-1)
    of_r, of_z, of_n = jnp.split(product(carry, kernel, dtype), GATES, axis=-1)
    update = nn.sigmoid(z + of_z)
    return (1 - update) * jnp.tanh(n + nn.sigmoid(r + of_r) * of_n) + update * carry


def _orthogonal_gates(key: Array, shape: tuple[int, int]) -> Array:
    """An orthogonal matrix for each gate, float32[H, 3 H]."""
    keys = jax.random.split(key, GATES)
    return jnp.concatenate([orthogonal(k, (shape[0], shape[0])) for k in keys], axis=1)
