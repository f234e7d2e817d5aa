"""A small recurrent network, injected into the trainer as a user's would be."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from hackmatrix.environments.interface.environment import Environment

Array = jax.Array


class _Memory(nn.Module):
    num_actions: int
    size: int

    @nn.compact
    def __call__(self, features: Array, carry: Array) -> tuple[Array, Array, Array]:
        carry, hidden = nn.GRUCell(self.size)(carry, features)
        return nn.Dense(self.num_actions)(hidden), nn.Dense(1)(hidden)[..., 0], carry


class MemoryNetwork:
    """A GRU on the environment's features."""

    recurrent = True
    reads_features = False

    def __init__(self, env: Environment, size: int = 16) -> None:
        self.num_actions = env.num_actions
        self._features = jax.vmap(env.features)
        self._feature_size = env.feature_size
        self._module = _Memory(env.num_actions, size)

    def init(self, key: Array) -> Any:
        return self._module.init(key, jnp.zeros((1, self._feature_size)), self.initial_carry(1))

    def initial_carry(self, num_games: int) -> Array:
        return jnp.zeros((num_games, self._module.size))

    def __call__(self, params: Any, observations: Any, carry: Any = ()) -> Any:
        return self._module.apply(params, self._features(observations), carry)
