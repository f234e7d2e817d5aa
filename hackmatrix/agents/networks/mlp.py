"""The network `mlp`: an MLP from features to logits and value, with orthogonal initial weights."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.networks.sparse import SparseFeatures, product
from hackmatrix.agents.networks.symmetry import Sums, Symmetry
from hackmatrix.environments.interface.environment import Environment

Array = jax.Array


def orthogonal(key: Array, shape: tuple[int, int], gain: float = 1.0) -> Array:
    """A uniformly distributed matrix of orthonormal columns, times `gain`; of rows, if fewer.

    It is `jax.nn.initializers.orthogonal` but for rounding. That asks LAPACK for a QR, whose last
    bits depend on the number of threads, and which takes a quarter of a second to import.

    Args:
        key: random key.
        shape: rows and columns.
        gain: length of each column, or of each row.

    Returns:
        float32[rows, columns].
    """
    rows, columns = shape
    columns_of = jax.random.normal(key, (max(shape), min(shape)))
    kernel = gain * _orthonormal(columns_of)
    return kernel if rows >= columns else kernel.T


@partial(jax.jit, inline=True)  # traced once a shape: Flax asks for the shapes at each call
def _orthonormal(matrix: Array) -> Array:
    """The columns made orthonormal one by one, float32[M, N] with M >= N.

    Each is freed twice of what lies along those before it: once is not enough in floats, twice is
    (Giraud et al. 2005, https://doi.org/10.1016/j.camwa.2005.08.009).
    """

    def add_column(index: Array, basis: Array) -> Array:
        column = jax.lax.dynamic_slice_in_dim(matrix, index, 1, axis=1)
        for _ in range(2):
            along = (basis * column).sum(0)
            column -= (basis * along).sum(1, keepdims=True)
        column /= jnp.sqrt((column**2).sum())
        return jax.lax.dynamic_update_slice_in_dim(basis, column, index, axis=1)

    return jax.lax.fori_loop(0, matrix.shape[1], add_column, jnp.zeros_like(matrix))


Inputs = Array | SparseFeatures | Sums


def make(env: Environment, config: NetworkConfig) -> Network:
    """An `ActorCritic` with the width, depth, activation and precision of `config`."""
    symmetry = Symmetry(env, config) if config.symmetric else None
    module = ActorCritic(
        env.num_actions,
        config.hidden_dim,
        config.num_layers,
        activation=config.activation,
        dtype=jnp.dtype(config.dtype),
        layer_norm=config.layer_norm,
        symmetry=symmetry,
    )
    return FeatureNetwork(env, module, reads_features=True, symmetry=symmetry)


class ActorCritic(nn.Module):
    """The original's `mlp`: a shared trunk, one head for the logits, one for the value.

    Its params are `Dense_0` .. `Dense_{num_layers-1}` (trunk), then the logits' head, then the
    value's. Orthogonal weights: gain sqrt(2) in the trunk, 0.01 for the logits, so that the first
    policy is nearly uniform, and 1 for the value (Andrychowicz et al. 2021,
    https://arxiv.org/abs/2006.05990).

    `activation` is "relu" (the original's) or "tanh". `dtype` is the precision of the inputs of
    matrix products; params and results are float32. With `layer_norm` the sums of trunk layer i are
    normalised by `LayerNorm_i` (Ba et al. 2016, https://arxiv.org/abs/1607.06450). With `symmetry`
    the features are `Sums`, and params must be such as it makes.
    """

    num_actions: int
    hidden_dim: int = 256
    num_layers: int = 2
    dtype: DTypeLike = jnp.float32
    activation: str = "relu"
    layer_norm: bool = False
    symmetry: Symmetry | None = None

    @nn.compact
    def __call__(self, features: Inputs) -> tuple[Array, Array]:
        """float32[..., F] -> logits float32[..., num_actions], value float32[...]."""
        hidden = trunk(
            features,
            self.hidden_dim,
            self.num_layers,
            dtype=self.dtype,
            activation=self.activation,
            layer_norm=self.layer_norm,
            symmetry=self.symmetry,
        )
        logits = Dense(self.num_actions, 0.01, self.dtype)(hidden)
        value = Dense(1, 1.0, self.dtype)(hidden)
        return logits, value[..., 0]


def trunk(
    features: Inputs,
    hidden_dim: int,
    num_layers: int,
    *,
    dtype: DTypeLike,
    activation: str,
    layer_norm: bool,
    blocks: tuple[int, ...] = (),
    symmetry: Symmetry | None = None,
) -> Array:
    """float32[..., F] -> float32[..., hidden_dim], by layers of the module that calls it.

    `blocks` are those of the first layer, see `Dense`.
    """
    act: Callable[[Array], Array] = relu if activation == "relu" else nn.tanh
    hidden: Any = features
    for number in range(num_layers):
        of_layer = () if number else blocks
        if symmetry is not None and number:
            hidden = symmetry.hidden_sums(hidden)
        hidden = Dense(hidden_dim, math.sqrt(2), dtype, of_layer)(hidden)
        hidden = act(nn.LayerNorm()(hidden) if layer_norm else hidden)
    return hidden


@jax.custom_jvp
def relu(sums: Array) -> Array:
    """max(sums, 0). Its derivative reads the result alone, so that a product can end with it."""
    return jnp.maximum(sums, 0)


# XLA would write "> 0" of the result as "> 0" of the sums, which would have to be kept besides.
relu.defjvps(lambda change, result, _: jnp.where(result != 0, change, 0))


class Dense(nn.Module):
    """A dense layer without activation: orthogonal weights with this gain, biases 0.

    With `blocks`, numbers of inputs, each block of inputs has an orthogonal matrix of its own.
    """

    size: int
    gain: float
    dtype: DTypeLike
    blocks: tuple[int, ...] = ()

    @nn.compact
    def __call__(self, features: Inputs) -> Array:
        """float32[..., F] -> float32[..., size]."""
        inputs = features.shape[-1]
        kernel = self.param("kernel", self._initial_kernel, (inputs, self.size))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.size,))
        if isinstance(features, SparseFeatures | Sums):
            return features.times(kernel, self.dtype) + bias
        return product(features, kernel, self.dtype) + bias

    def _initial_kernel(self, key: Array, shape: tuple[int, int]) -> Array:
        if not self.blocks:
            return orthogonal(key, shape, self.gain)
        keys = jax.random.split(key, len(self.blocks))
        parts = zip(keys, self.blocks, strict=True)
        return jnp.concatenate([orthogonal(k, (n, self.size), self.gain) for k, n in parts])
