"""Advantages by GAE, and the losses of a network's values."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.network import ChanceNetwork, Network

Array = jax.Array

_SURE = 1e-6  # chances nearer to 0 or 1 are not told apart: their logarithms are not exact


def generalized_advantages(
    rewards: Array,
    values: Array,
    last_value: Array,
    final_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: float | Array,
    gae_lambda: float | Array,
) -> Array:
    """Generalized advantages, float32[T, N]; see `Environment` for the end of an episode.

    Schulman et al. 2016, https://arxiv.org/abs/1506.02438.

    Args:
        rewards: float32[T, N].
        values: float32[T, N], of the observations before the steps.
        last_value: float32[N], of the observation after the last step.
        final_values: float32[T, N], of the final observation; used only where truncated.
        terminated: bool[T, N], whether the episode ended as part of the game: no value follows.
        truncated: bool[T, N], whether the episode was cut off: the final value is bootstrapped.
        gamma: discount of one step.
        gae_lambda: 0 looks one step ahead, 1 to the end of the episode.
    """
    following = jnp.concatenate([values[1:], last_value[None]])
    following = jnp.where(truncated, final_values, following)
    following = jnp.where(terminated, 0.0, following)
    deltas = rewards + gamma * following - values
    decay = jnp.where(terminated | truncated, 0.0, gamma * gae_lambda)

    def backwards(advantage: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, factor = step
        advantage = delta + factor * advantage
        return advantage, advantage

    _, advantages = jax.lax.scan(
        backwards, jnp.zeros_like(last_value), (deltas, decay), reverse=True
    )
    return advantages


class Terms(NamedTuple):
    """A loss: a factor times the mean of the terms of all samples."""

    factor: float
    per_sample: Array


def value_loss(network: Network, values: Array, returns: Array) -> Array:
    """The loss of a network's values, float32[]."""
    terms = value_terms(network, values, returns)
    return terms.factor * jnp.mean(terms.per_sample)


def value_terms(network: Network, values: Array, returns: Array) -> Terms:
    """The loss of a network's values: half the mean squared error.

    Of chances it is the cross-entropy with returns of 0..1, outcomes or expected ones: its minimum
    is calibrated, and its gradient does not vanish where a chance near 1 is wrong.
    """
    if not isinstance(network, ChanceNetwork):
        return Terms(0.5, (values - returns) ** 2)
    chances = jnp.clip(values, _SURE, 1 - _SURE)
    return Terms(-1.0, returns * jnp.log(chances) + (1 - returns) * jnp.log1p(-chances))


def clipped_value_terms(value: Array, near: Array, returns: Array) -> Terms:
    """Half the mean of the larger squared error, of the values or of those kept `near` the old."""
    return Terms(0.5, jnp.maximum((value - returns) ** 2, (near - returns) ** 2))
