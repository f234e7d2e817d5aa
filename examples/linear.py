"""A network of one's own: one linear layer for the policy, one for the value."""

import jax
from flax import linen as nn

import hackmatrix
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.trainer import Trainer


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


if __name__ == "__main__":
    env = hackmatrix.make(layout="tactical")
    config = PPOConfig(num_envs=8, num_steps=16)
    trainer = Trainer(env, config, make(env, NetworkConfig()))
    state = trainer.run(trainer.init(seed=0), 2)  # two updates of 8 x 16 steps
    print(jax.tree.map(jax.numpy.shape, state.params))
