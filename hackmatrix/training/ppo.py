"""PPO's update (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents import distribution
from hackmatrix.agents.agent import Agent
from hackmatrix.agents.environment import PyTree
from hackmatrix.training.advantages import generalized_advantages
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.minibatches import minibatch_indices
from hackmatrix.training.rollout import Rollout, Transition

Array = jax.Array
Scalars = dict[str, Array]


class Batch(NamedTuple):
    """What one gradient step reads of a transition; the leading axis counts transitions."""

    obs: PyTree
    mask: Array  # uint32
    action: Array  # uint8
    log_prob: Array  # float32, of the policy that acted
    value: Array  # float32, of the network that acted, in scaled units
    advantage: Array  # float32, in scaled units


def optimizer(config: TrainConfig) -> optax.GradientTransformation:
    """Adam with eps 1e-5 on gradients clipped by their global norm."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm), optax.adam(config.lr, eps=1e-5)
    )


def loss(
    params: PyTree, batch: Batch, *, agent: Agent, config: TrainConfig
) -> tuple[Array, Scalars]:
    """Clipped surrogate + value loss - entropy bonus of a minibatch, and its parts by name.

    The KL divergence from the policy that acted is estimated by (r - 1) - log r with the
    probability ratio r: unbiased, of low variance and never negative
    (http://joschu.net/blog/kl-approx.html).
    """
    logits, value = agent(params, batch.obs)
    mask = distribution.unpack_mask(batch.mask, agent.num_actions)
    log_probs = distribution.log_probabilities(logits, mask)
    log_ratio = distribution.log_probability(log_probs, batch.action) - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip_eps, 1 + config.clip_eps)
    advantage = _normalised(batch.advantage)
    returns = batch.advantage + batch.value

    pg_loss = -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))
    vf_loss = 0.5 * jnp.mean((value - returns) ** 2)
    entropy = jnp.mean(distribution.entropy(log_probs))
    total = pg_loss + config.vf_coef * vf_loss - config.ent_coef * entropy
    return total, {
        "total_loss": total,
        "pg_loss": pg_loss,
        "vf_loss": vf_loss,
        "entropy": entropy,
        "approx_kl": jnp.mean((ratio - 1) - log_ratio),
        "clip_frac": jnp.mean(jnp.abs(ratio - 1) > config.clip_eps),
    }


def learn(
    params: PyTree,
    opt_state: optax.OptState,
    rollout: Rollout,
    reward_deviation: Array,
    seed: Array,
    update: Array,
    *,
    agent: Agent,
    config: TrainConfig,
) -> tuple[PyTree, optax.OptState, Scalars]:
    """Some epochs of minibatch gradient steps on a rollout.

    Minibatches are gathered by index from the rollout as it lies, compact observations and all.

    Returns:
        Params, optimizer state, and scalars by name: means over the minibatches of the last epoch.
    """
    batch = flat_batch(rollout, reward_deviation, config)
    gradient = jax.value_and_grad(loss, has_aux=True)
    adam = optimizer(config)

    def gradient_step(
        carry: tuple[PyTree, optax.OptState], indices: Array
    ) -> tuple[PyTree, Scalars]:
        params, opt_state = carry
        minibatch = jax.tree.map(lambda x: x[indices], batch)
        (_, scalars), grads = gradient(params, minibatch, agent=agent, config=config)
        updates, opt_state = adam.update(grads, opt_state, params)
        scalars |= {"grad_norm": optax.tree.norm(grads)}
        return (optax.apply_updates(params, updates), opt_state), scalars

    def epoch(carry: tuple[PyTree, optax.OptState], number: Array) -> tuple[PyTree, Scalars]:
        indices = minibatch_indices(
            seed,
            update,
            number,
            num_steps=config.num_steps,
            num_envs=config.num_envs,
            num_minibatches=config.num_minibatches,
        )
        carry, scalars = jax.lax.scan(gradient_step, carry, indices)
        return carry, jax.tree.map(jnp.mean, scalars)

    (params, opt_state), scalars = jax.lax.scan(
        epoch, (params, opt_state), jnp.arange(config.update_epochs)
    )
    scalars = jax.tree.map(lambda epochs: epochs[-1], scalars)
    scalars |= {"explained_variance": _explained_variance(batch), "reward_scale": reward_deviation}
    return params, opt_state, scalars


def flat_batch(rollout: Rollout, reward_deviation: Array, config: TrainConfig) -> Batch:
    """The rollout's transitions as one axis [T * N], with advantages of the scaled rewards."""
    steps: Transition = rollout.steps
    advantages = generalized_advantages(
        steps.reward / reward_deviation,
        steps.value,
        rollout.last_value,
        steps.final_value,
        steps.terminated,
        steps.truncated,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
    )
    batch = Batch(steps.obs, steps.mask, steps.action, steps.log_prob, steps.value, advantages)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)


def _normalised(advantage: Array) -> Array:
    """Mean 0 and deviation 1 over the minibatch."""
    centred = advantage - jnp.mean(advantage)
    return centred / (jnp.sqrt(jnp.mean(centred**2)) + 1e-8)


def _explained_variance(batch: Batch) -> Array:
    """1 - Var(returns - values) / Var(returns); 0 where the returns do not vary."""
    variance = jnp.var(batch.advantage + batch.value)
    return jnp.where(variance > 0, 1 - jnp.var(batch.advantage) / variance, 0.0)
