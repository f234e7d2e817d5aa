"""The network `separate_critic`: two MLPs, one for the logits and one for the value."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import Dense, trunk
from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import Environment

Array = jax.Array


def make(env: Environment, config: NetworkConfig) -> Network:
    """An `ActorAndCritic` with the width, depth, activation and precision of `config`."""
    return FeatureNetwork(env, ActorAndCritic(env.num_actions, config), reads_features=False)


class ActorAndCritic(nn.Module):
    """An `ActorCritic` whose value has a trunk of its own: its gradient leaves the policy alone.

    Its params are the trunk of the logits, that of the value, then the logits' head and the
    value's. Andrychowicz et al. 2021 (https://arxiv.org/abs/2006.05990, section 3.2) find that
    separate networks often do better.
    """

    num_actions: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, features: Array) -> tuple[Array, Array]:
        """float32[..., F] -> logits float32[..., num_actions], value float32[...]."""
        config, dtype = self.config, jnp.dtype(self.config.dtype)
        for_logits, for_value = (
            trunk(
                features,
                config.hidden_dim,
                config.num_layers,
                dtype=dtype,
                activation=config.activation,
                layer_norm=config.layer_norm,
            )
            for _ in range(2)
        )
        logits = Dense(self.num_actions, 0.01, dtype)(for_logits)
        return logits, Dense(1, 1.0, dtype)(for_value)[..., 0]
