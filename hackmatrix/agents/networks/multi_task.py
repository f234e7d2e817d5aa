"""The network `multi_task`: an encoder and heads for each task, a trunk that all share.

The features of a `tasks.MultiTask` are those of all tasks, 0 except the game's, and the task as a
one-hot vector. So the first layer is the encoder of the game's task plus a learned vector of the
task, its token.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.networks.architectures import MULTI_TASK, NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import Dense, trunk
from hackmatrix.agents.networks.network import Network
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Environment, optional_members

Array = jax.Array


def make(env: Environment, config: NetworkConfig) -> Network:
    """The network with the width, depth, activation and precision of `config`.

    Raises:
        UserError: the environment has no tasks.
    """
    if (owners := optional_members(env).feature_owners) is None:
        raise UserError(f"--architecture {MULTI_TASK} goes with --multi-task; take mlp for one")
    owned = np.asarray(owners).sum(axis=1)
    blocks = (*map(int, owned), len(owned))
    return FeatureNetwork(env, SharedTrunk(env.num_actions, blocks, config), reads_features=True)


class SharedTrunk(nn.Module):
    """Encoders, a shared trunk, and for each task a head for its logits and one for its value.

    Its params are those of an `ActorCritic` with a layer more, the first one, and heads for all
    tasks. In the first layer each encoder has an orthogonal matrix, and so have the tokens.
    """

    num_actions: int
    blocks: tuple[int, ...]  # numbers of features: of each task, and of the tokens
    config: NetworkConfig

    @nn.compact
    def __call__(self, features: Array) -> tuple[Array, Array]:
        """float32[..., F] -> logits float32[..., num_actions], value float32[...]."""
        config, tasks = self.config, self.blocks[-1]
        dtype = jnp.dtype(config.dtype)
        hidden = trunk(
            features,
            config.hidden_dim,
            1 + config.num_layers,
            dtype=dtype,
            activation=config.activation,
            layer_norm=config.layer_norm,
            blocks=self.blocks,
        )
        task = features[..., -tasks:]
        logits = Dense(tasks * self.num_actions, 0.01, dtype)(hidden)
        logits = logits.reshape(*logits.shape[:-1], tasks, self.num_actions)
        values = Dense(tasks, 1.0, dtype)(hidden)
        return jnp.sum(task[..., None] * logits, axis=-2), jnp.sum(task * values, axis=-1)
