"""The network `cells`: reads the board cell by cell, and each action by what it acts on."""

import functools
import math
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.cells_forward import (
    CHANNELS_SHARE,
    EPSILON,
    REACH,
    ArrayOperations,
    Reading,
    forward,
    reading_of,
    shapes_of,
)
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import orthogonal
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.networks.sparse import product
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members
from hackmatrix.game.rules.observation import FEATURE_SIZE

Array = jax.Array

# Gains of the orthogonal matrices; of all others it is sqrt(2).
_GAIN = {"logits": 0.01, "value": 1.0, "second": 0.5}


def make(env: Environment, config: NetworkConfig) -> Network:
    """The network of `config` for a layout of HackMatrix.

    Raises:
        UserError: it is another environment, or the width is too small.
    """
    layout = optional_members(env).layout
    if FEATURE_SIZE.get(layout) != env.feature_size:
        raise UserError(
            "--architecture cells reads the board of HackMatrix; for other environments take mlp "
            "or gru"
        )
    if config.hidden_dim < CHANNELS_SHARE:
        raise UserError(
            f"--architecture cells needs --hidden-dim of at least {CHANNELS_SHARE}: each cell has "
            "an eighth of it as channels"
        )
    return FeatureNetwork(
        env, cast(nn.Module, CellNetwork(reading_of(layout), config)), reads_features=False
    )


class CellNetwork:
    """`init` and `apply` as those of a flax module, for `FeatureNetwork`."""

    def __init__(self, reading: Reading, config: NetworkConfig) -> None:
        self._reading = reading
        self._config = config
        dot = functools.partial(product, dtype=jnp.dtype(config.dtype))
        self._backend = ArrayOperations(jnp, dot, norm)

    def init(self, key: Array, features: Array) -> PyTree:
        """Fresh params: nested dicts of float32 arrays."""
        tree: dict[str, Any] = {}
        shapes = shapes_of(self._reading, self._config)
        for layer_key, (name, shape) in zip(
            jax.random.split(key, len(shapes)), shapes.items(), strict=True
        ):
            node = tree
            for part in name[:-1]:
                node = node.setdefault(part, {})
            node[name[-1]] = _first(layer_key, name, shape)
        return {"params": tree}

    def apply(self, params: PyTree, features: Array) -> tuple[Array, Array]:
        """Logits float32[B, 28] and values float32[B] of features float32[B, F]."""
        return forward(params, features, self._reading, self._config.activation, self._backend)


@jax.custom_vjp
def norm(inputs: Array) -> Array:
    """float32[C, ..., B] shifted and scaled to mean 0 and deviation 1 over C.

    The derivative is written out, and means are products: both are faster on CPU.
    """
    return _norm(inputs)[0]


def _norm(inputs: Array) -> tuple[Array, tuple[Array, Array]]:
    centred = inputs - _mean(inputs)
    scale = jax.lax.rsqrt(_mean(centred**2) + EPSILON)
    return centred * scale, (centred * scale, scale)


def _norm_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array]:
    result, scale = saved
    return (scale * (gradient - _mean(gradient) - result * _mean(gradient * result)),)


norm.defvjp(_norm, _norm_backward)


def _mean(inputs: Array) -> Array:
    """float32[..., B] of float32[C, ..., B]."""
    weights = jnp.full((1, len(inputs)), 1 / len(inputs), inputs.dtype)
    return (weights @ inputs.reshape(len(inputs), -1)).reshape(inputs.shape[1:])


def _first(key: Array, name: tuple[str, ...], shape: tuple[int, ...]) -> Array:
    match name[-1]:
        case "bias":
            return jnp.zeros(shape)
        case "spread":
            return jax.random.normal(key, shape) * _NEARNESS
        case "head":
            return 0.01 * jax.random.normal(key, shape)
        case "embedding":
            return jax.random.normal(key, shape)
    inputs, outputs = shape
    return orthogonal(key, (inputs, outputs), _GAIN.get(name[-2], math.sqrt(2)))


def _nearness() -> np.ndarray:
    """Deviations of a kernel's first weights: less for what is farther away; squares sum to 1."""
    steps = np.abs(np.arange(REACH) - REACH // 2)
    near = 1 / (1 + steps[:, None] + steps)
    return (near / np.sqrt((near**2).sum())).astype(np.float32)


_NEARNESS = _nearness()
