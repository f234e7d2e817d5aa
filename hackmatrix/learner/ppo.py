"""PPO's update (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents import distribution
from hackmatrix.agents.agent import Agent
from hackmatrix.interface.environment import PyTree
from hackmatrix.learner import anomalies, mesh
from hackmatrix.learner.advantages import generalized_advantages
from hackmatrix.learner.minibatches import minibatch_indices
from hackmatrix.learner.rollout import Rollout, Transition
from hackmatrix.settings.config import Course, TrainConfig

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


class Learned(NamedTuple):
    """What an update leaves."""

    params: PyTree
    opt_state: optax.OptState
    scalars: Scalars  # means over the minibatches of the last epoch
    anomalies: Array  # int32[S], for each step of the optimizer; see `anomalies.py`


def optimizer(config: TrainConfig) -> optax.GradientTransformation:
    """Adam with eps 1e-5 on gradients clipped by their global norm; the rate is not in it."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm), optax.scale_by_adam(eps=1e-5)
    )


def learning_rate(config: TrainConfig, course: Course, update: Any, xp: ModuleType = jnp) -> Any:
    """The rate of an update (counted from 0), float32 for traced numbers; `xp` is jnp or NumPy."""
    made = update - course.first_update + course.first_timesteps / course.batch_size
    whole = course.num_updates - course.first_update + course.first_timesteps / course.batch_size
    progress = made / whole
    match config.lr_schedule:
        case "linear":
            return config.lr * (1 - progress)
        case "cosine":
            return config.lr * 0.5 * (1 + xp.cos(xp.pi * progress))
        case _:
            return config.lr


def loss(
    params: PyTree, batch: Batch, *, agent: Agent, config: TrainConfig
) -> tuple[Array, Scalars]:
    """Clipped surrogate + value loss - entropy bonus of a minibatch, and its parts by name.

    Of this device's share of the minibatch: advantages are normalised over all shares, and so is
    the entropy of random play; means are of this one.

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
    of_random_play = mesh.pmean(jnp.mean(jnp.log(jnp.maximum(jnp.sum(mask, axis=-1), 1))))
    total = pg_loss + config.vf_coef * vf_loss - config.ent_coef * entropy
    return total, {
        "total_loss": total,
        "pg_loss": pg_loss,
        "vf_loss": vf_loss,
        "entropy": entropy,
        "entropy_frac": jnp.where(of_random_play > 0, entropy / of_random_play, 1.0),
        "approx_kl": jnp.mean((ratio - 1) - log_ratio),
        "clip_frac": jnp.mean(jnp.abs(ratio - 1) > config.clip_eps),
    }


def learn(
    params: PyTree,
    opt_state: optax.OptState,
    batch: Batch,
    seed: Array,
    update: Array,
    *,
    agent: Agent,
    network_params: Callable[[PyTree], PyTree],
    config: TrainConfig,
    course: Course | None = None,
    detect_anomaly: bool = False,
) -> Learned:
    """Some epochs of minibatch gradient steps on this device's share of a batch.

    Minibatches are gathered by index from the rollout as it lies, compact observations and all.

    Args:
        params: what is learned.
        opt_state: of `optimizer`.
        batch: leading axis T * N, N being the games of this device.
        seed: uint32[], of the run.
        update: int32[], updates made so far.
        agent: the network.
        network_params: the params that the network reads, from those that are learned.
        config: settings; its `num_envs` are the games of all devices.
        course: of the run; None: that of a fresh one.
        detect_anomaly: whether every step is searched for numbers that are not finite.
    """
    adam = optimizer(config)
    course = course or Course(config.batch_size, config.total_timesteps)
    rate = learning_rate(config, course, update)
    num_envs = batch.action.size // config.num_steps
    groups = config.num_groups
    groups = groups * num_envs // config.num_envs

    def objective(params: PyTree, indices: Array) -> tuple[Array, Scalars]:
        minibatch = jax.tree.map(lambda x: x[indices], batch)
        return loss(network_params(params), minibatch, agent=agent, config=config)

    def gradient(params: PyTree, indices: Array) -> tuple[PyTree, Scalars]:
        (_, scalars), grads = jax.value_and_grad(objective, has_aux=True)(params, indices)
        return grads, scalars

    def mean_gradient(params: PyTree, indices: Array) -> tuple[PyTree, Scalars]:
        """Of some minibatches [K, B/M], one after the other."""
        first = gradient(params, indices[0])
        if len(indices) == 1:
            return first

        def add(sums: PyTree, indices: Array) -> tuple[PyTree, None]:
            return jax.tree.map(jnp.add, sums, gradient(params, indices)), None

        sums, _ = jax.lax.scan(add, first, indices[1:])
        return jax.tree.map(lambda x: x / len(indices), sums)

    def step(
        carry: tuple[PyTree, optax.OptState], indices: Array
    ) -> tuple[PyTree, tuple[Scalars, Array]]:
        params, opt_state = carry
        grads, scalars = mesh.pmean(mean_gradient(params, indices))
        scalars |= {"grad_norm": optax.tree.norm(grads)}
        directions, opt_state = adam.update(grads, opt_state, params)
        params = jax.tree.map(lambda p, d: p - rate * d, params, directions)
        found = jnp.int32(anomalies.NONE)
        if detect_anomaly:
            found = anomalies.first_of(anomalies.tensors_of_step(scalars, grads, params))
        return (params, opt_state), (scalars, found)

    def epoch(
        carry: tuple[PyTree, optax.OptState], number: Array
    ) -> tuple[PyTree, tuple[Scalars, Array]]:
        indices = minibatch_indices(
            seed,
            update,
            number,
            num_steps=config.num_steps,
            num_envs=num_envs,
            num_minibatches=config.num_minibatches,
            groups=groups,
            first_group=mesh.first_index(groups),
        )
        together = config.gradient_accumulation_steps
        indices = indices.reshape(-1, together, *indices.shape[1:])
        carry, (scalars, found) = jax.lax.scan(step, carry, indices)
        return carry, (jax.tree.map(jnp.mean, scalars), found)

    (params, opt_state), (scalars, found) = jax.lax.scan(
        epoch, (params, opt_state), jnp.arange(config.update_epochs)
    )
    scalars = jax.tree.map(lambda epochs: epochs[-1], scalars)
    scalars |= {"explained_variance": _explained_variance(batch)}
    return Learned(params, opt_state, scalars, found.reshape(-1))


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
    """Mean 0 and deviation 1 over the minibatch on all devices."""
    centred = advantage - mesh.pmean(jnp.mean(advantage))
    return centred / (jnp.sqrt(mesh.pmean(jnp.mean(centred**2))) + 1e-8)


def _explained_variance(batch: Batch) -> Array:
    """1 - Var(returns - values) / Var(returns); 0 where the returns do not vary."""
    variance = _variance(batch.advantage + batch.value)
    return jnp.where(variance > 0, 1 - _variance(batch.advantage) / variance, 0.0)


def _variance(values: Array) -> Array:
    """Over all devices."""
    centred = values - mesh.pmean(jnp.mean(values))
    return mesh.pmean(jnp.mean(centred**2))
