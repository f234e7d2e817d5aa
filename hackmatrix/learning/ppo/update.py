"""The PPO update (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import ChanceNetwork, Network, unroll
from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.ppo import anomalies
from hackmatrix.learning.ppo.advantages import generalized_advantages
from hackmatrix.learning.ppo.hyperparameters import Hyperparameters
from hackmatrix.learning.ppo.keys import UpdateKeys
from hackmatrix.learning.ppo.minibatches import Shares, minibatch_indices
from hackmatrix.learning.ppo.rollout import Rollout
from hackmatrix.learning.ppo.setup import Task
from hackmatrix.learning.ppo.tasks import normalised, of_games

Array = jax.Array
Scalars = dict[str, Array]

_SURE = 1e-6  # chances nearer to 0 or 1 are not told apart: their logarithms are not exact
_OF_RANDOM_PLAY = "entropy_of_random_play"  # one of the parts of a loss


class Samples(NamedTuple):
    """The inputs of the loss: transitions with the leading axis B, or sequences, [T, B]."""

    obs: PyTree
    mask: Array  # uint32
    action: Array  # uint8
    log_prob: Array  # float32, of the policy that acted
    value: Array  # float32, of the network that acted, in scaled units
    advantage: Array  # float32, in scaled units
    starts: Array | None  # bool, whether the step begins an episode; for recurrent networks
    tasks: Array | None = None  # float32, see `tasks.py`, with an axis K at the end


class Batch(NamedTuple):
    """The samples of one update.

    For a recurrent network they are sequences of T steps, and `carry` is the network's carry before
    the first step, with the leading axis B. Otherwise they are transitions, and `carry` is the
    empty tree.
    """

    samples: Samples
    carry: PyTree


class Weights(NamedTuple):
    """Params and optimizer state, which gradient steps change."""

    params: PyTree
    opt_state: optax.OptState


class Learned(NamedTuple):
    """Result of one PPO update."""

    weights: Weights
    scalars: Scalars  # means over the minibatches of the last epoch
    anomalies: Array  # int32[S], for each step of the optimizer; see `anomalies.py`


def optimizer(max_grad_norm: Any) -> optax.GradientTransformation:
    """Adam with eps 1e-5 after clipping by global norm; the learning rate is applied by `learn`."""
    return optax.chain(optax.clip_by_global_norm(max_grad_norm), optax.scale_by_adam(eps=1e-5))


def loss(
    params: PyTree, batch: Batch, *, network: Network, hyper: Hyperparameters, ent_coef: Any
) -> tuple[Array, Scalars]:
    """PPO loss of a minibatch (policy + value - entropy bonus), and its parts by name.

    It is the loss of this device's share of the minibatch: means are taken over that share, but
    advantages are normalised over the shares of all devices.

    The KL divergence from the policy that acted is estimated by (r - 1) - log r with the
    probability ratio r: unbiased, of low variance and never negative
    (http://joschu.net/blog/kl-approx.html).
    """
    samples = batch.samples
    if samples.starts is None:
        logits, value, _ = network(params, samples.obs)
    else:
        logits, value = unroll(network, params, samples.obs, samples.starts, batch.carry)
    mask = distribution.unpack_mask(samples.mask, network.num_actions)
    log_probs = distribution.log_probabilities(logits, mask)
    log_ratio = distribution.log_probability(log_probs, samples.action) - samples.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - hyper.clip_eps, 1 + hyper.clip_eps)
    advantage = normalised(samples.advantage, samples.tasks)
    returns = samples.advantage + samples.value

    pg_loss = -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))
    vf_loss = value_loss(network, value, returns)
    entropy = jnp.mean(distribution.entropy(log_probs))
    total = pg_loss + hyper.vf_coef * vf_loss - ent_coef * entropy
    return total, {
        "total_loss": total,
        "pg_loss": pg_loss,
        "vf_loss": vf_loss,
        "entropy": entropy,
        _OF_RANDOM_PLAY: jnp.mean(jnp.log(jnp.maximum(jnp.sum(mask, axis=-1), 1))),
        "approx_kl": jnp.mean((ratio - 1) - log_ratio),
        "clip_frac": jnp.mean(jnp.abs(ratio - 1) > hyper.clip_eps),
    }


def value_loss(network: Network, values: Array, returns: Array) -> Array:
    """The loss of a network's values, float32[]: half the mean squared error.

    Of chances it is the cross-entropy with returns of 0..1, outcomes or expected ones: its minimum
    is calibrated, and its gradient does not vanish where a chance near 1 is wrong.
    """
    if not isinstance(network, ChanceNetwork):
        return 0.5 * jnp.mean((values - returns) ** 2)
    chances = jnp.clip(values, _SURE, 1 - _SURE)
    return -jnp.mean(returns * jnp.log(chances) + (1 - returns) * jnp.log1p(-chances))


def learn(
    task: Task,
    weights: Weights,
    batch: Batch,
    keys: UpdateKeys,
    hyper: Hyperparameters,
    network_params: Callable[[PyTree], PyTree] = lambda params: params,
) -> Learned:
    """Runs the epochs of minibatch gradient steps on this device's share of a batch.

    Minibatches are gathered by index from the rollout, with observations in compact form.

    Args:
        task: the network and the settings; `num_envs` counts the games of all devices.
        weights: params and optimizer state before the update.
        batch: samples of this device's games.
        keys: random keys of the update.
        hyper: settings that are inputs of the update.
        network_params: maps the learned params to those that the network is applied with.
    """
    config, network = task.config, task.network
    adam = optimizer(hyper.max_grad_norm)
    rate, ent_coef = hyper.learning_rate(keys.update), hyper.entropy_coef(keys.update)
    num_envs = batch.samples.action.size // config.num_steps
    shares = Shares.of(config, num_envs, recurrent=network.recurrent)
    first_group = mesh.first_index(shares.num_groups)

    def objective(params: PyTree, indices: Array) -> tuple[Array, Scalars]:
        minibatch = _minibatch(batch, indices)
        return loss(
            network_params(params),
            minibatch,
            network=network,
            hyper=hyper,
            ent_coef=ent_coef,
        )

    def gradient(params: PyTree, indices: Array) -> tuple[PyTree, Scalars]:
        (_, scalars), grads = jax.value_and_grad(objective, has_aux=True)(params, indices)
        return grads, scalars

    def step(weights: Weights, indices: Array) -> tuple[Weights, tuple[Scalars, Array]]:
        grads, scalars = mesh.pmean(_mean_over_minibatches(gradient, weights.params, indices))
        scalars |= {"grad_norm": optax.tree.norm(grads), "entropy_frac": _entropy_frac(scalars)}
        del scalars[_OF_RANDOM_PLAY]
        directions, opt_state = adam.update(grads, weights.opt_state, weights.params)
        params = jax.tree.map(lambda p, d: p - rate * d, weights.params, directions)
        found = jnp.int32(anomalies.NONE)
        if task.detect_anomaly:
            found = anomalies.first_of(anomalies.tensors_of_step(scalars, grads, params))
        return Weights(params, opt_state), (scalars, found)

    def epoch(weights: Weights, number: Array) -> tuple[Weights, tuple[Scalars, Array]]:
        indices = minibatch_indices(keys, number, shares, first_group)
        together = config.gradient_accumulation_steps
        indices = indices.reshape(-1, together, *indices.shape[1:])
        weights, (scalars, found) = jax.lax.scan(step, weights, indices)
        return weights, (jax.tree.map(jnp.mean, scalars), found)

    weights, (scalars, found) = jax.lax.scan(epoch, weights, jnp.arange(config.update_epochs))
    scalars = jax.tree.map(lambda epochs: epochs[-1], scalars)
    scalars |= {"explained_variance": _explained_variance(batch.samples)}
    return Learned(weights, scalars, found.reshape(-1))


def _mean_over_minibatches(
    gradient: Callable[[PyTree, Array], PyTree], params: PyTree, indices: Array
) -> PyTree:
    """Mean of `gradient` over K minibatches, int32[K, B/M], computed one after another."""
    first = gradient(params, indices[0])
    if len(indices) == 1:
        return first

    def add(sums: PyTree, indices: Array) -> tuple[PyTree, None]:
        return jax.tree.map(jnp.add, sums, gradient(params, indices)), None

    sums, _ = jax.lax.scan(add, first, indices[1:])
    return jax.tree.map(lambda x: x / len(indices), sums)


def batch_of(rollout: Rollout, reward_deviation: Array, hyper: Hyperparameters) -> Batch:
    """The rollout's samples with their advantages, computed from the scaled rewards.

    Transitions get one axis [T * N]; sequences stay [T, N].
    """
    steps = rollout.steps
    advantages = generalized_advantages(
        steps.reward / of_games(reward_deviation, rollout.tasks),
        steps.value,
        rollout.last_value,
        steps.final_value,
        steps.terminated,
        steps.truncated,
        gamma=hyper.gamma,
        gae_lambda=hyper.gae_lambda,
    )
    tasks = rollout.tasks
    samples = Samples(
        steps.obs,
        steps.mask,
        steps.action,
        steps.log_prob,
        steps.value,
        advantages,
        steps.starts,
        None if tasks is None else jnp.broadcast_to(tasks, (len(advantages), *tasks.shape)),
    )
    if steps.starts is None:
        samples = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)
    return Batch(samples, rollout.first_carry)


def _minibatch(batch: Batch, indices: Array) -> Batch:
    if batch.samples.starts is None:
        return Batch(jax.tree.map(lambda x: x[indices], batch.samples), batch.carry)
    return Batch(
        jax.tree.map(lambda x: x[:, indices], batch.samples),
        jax.tree.map(lambda x: x[indices], batch.carry),
    )


def _entropy_frac(parts: Scalars) -> Array:
    """The entropy as a part of that of random play; 1 where there is never a choice."""
    of_random_play = parts[_OF_RANDOM_PLAY]
    return jnp.where(of_random_play > 0, parts["entropy"] / of_random_play, 1.0)


def _explained_variance(samples: Samples) -> Array:
    """1 - Var(returns - values) / Var(returns); 0 where the returns do not vary."""
    variance = _variance(samples.advantage + samples.value)
    return jnp.where(variance > 0, 1 - _variance(samples.advantage) / variance, 0.0)


def _variance(values: Array) -> Array:
    """Variance over the values of all devices."""
    centred = values - mesh.pmean(jnp.mean(values))
    return mesh.pmean(jnp.mean(centred**2))
