"""A network of one's own: one linear layer for the policy, one for the value."""

import jax
from flax import linen as nn

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import Environment


class Linear(nn.Module):
    """Feature vectors float32[B, F] to logits float32[B, A] and values float32[B]."""

    num_actions: int

    @nn.compact
    def __call__(self, features: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The logits and the values."""
        return nn.Dense(self.num_actions)(features), nn.Dense(1)(features)[..., 0]


def make(env: Environment, config: NetworkConfig) -> Network:
    """The network for an environment; `config` has --hidden-dim, --num-layers and so on."""
    del config
    return FeatureNetwork(env, Linear(env.num_actions), reads_features=False)
