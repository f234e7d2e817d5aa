"""Networks: features in, logits and value out."""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp

Array = jax.Array


class ActorCritic(nn.Module):
    """The original's `mlp`: a shared trunk with ReLU, one head for the logits, one for the value.

    Its params are `Dense_0` .. `Dense_{num_layers-1}` (trunk), then the logits' head, then the
    value's. Orthogonal weights: gain sqrt(2) in the trunk, 0.01 for the logits, so that the first
    policy is nearly uniform, and 1 for the value (Andrychowicz et al. 2021,
    https://arxiv.org/abs/2006.05990).
    """

    num_actions: int
    hidden_dim: int = 256
    num_layers: int = 2

    @nn.compact
    def __call__(self, features: Array) -> tuple[Array, Array]:
        """float32[..., F] -> logits float32[..., num_actions], value float32[...]."""
        hidden = features
        for _ in range(self.num_layers):
            hidden = nn.relu(_dense(self.hidden_dim, math.sqrt(2))(hidden))
        logits = _dense(self.num_actions, 0.01)(hidden)
        value = _dense(1, 1.0)(hidden)
        return logits.astype(jnp.float32), value[..., 0].astype(jnp.float32)


def _dense(size: int, gain: float) -> nn.Dense:
    return nn.Dense(size, kernel_init=nn.initializers.orthogonal(gain))
