"""Generalized advantage estimation (Schulman et al. 2016, https://arxiv.org/abs/1506.02438)."""

import jax
import jax.numpy as jnp

Array = jax.Array


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
