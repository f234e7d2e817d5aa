"""PPO (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import ChanceNetwork, Network
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.learning.ppo.algorithm import (
    Learned,
    PolicyOutput,
    SampledActions,
    Scalars,
    Weights,
)
from hackmatrix.learning.ppo.epochs import (
    Batch,
    EarlyStop,
    Norm,
    answers,
    clip_by_global_norm,
    gradient_steps,
    norm_with_copies,
)
from hackmatrix.learning.ppo.hyperparameters import Hyperparameters
from hackmatrix.learning.ppo.keys import UpdateKeys
from hackmatrix.learning.ppo.setup import Task

Array = jax.Array

STORED = ("log_prob",)  # of the policy that acted
LOSSES = ("pg_loss", "vf_loss", "entropy", "total_loss")
SCALARS = (
    *LOSSES,
    *("entropy_frac", "approx_kl", "clip_frac", "explained_variance", "grad_norm"),
)
METRICS: tuple[Metric, ...] = ()

_SURE = 1e-6  # chances nearer to 0 or 1 are not told apart: their logarithms are not exact
_OF_RANDOM_PLAY = "entropy_of_random_play"  # one of the parts of a loss


def optimizer(max_grad_norm: Any, norm: Norm = optax.tree.norm) -> optax.GradientTransformation:
    """Adam with eps 1e-5 after clipping by global norm; the learning rate is applied by `learn`."""
    return optax.chain(clip_by_global_norm(max_grad_norm, norm), optax.scale_by_adam(eps=1e-5))


def choose(
    task: Task, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
) -> SampledActions:
    """Samples from the policy; see `Algorithm`."""
    del task, params, hyper, update
    log_probs = distribution.log_probabilities(position.logits, position.mask)
    action = distribution.sample(log_probs, position.mask, position.uniform)
    return SampledActions(action, {"log_prob": distribution.log_probability(log_probs, action)})


def loss(
    params: PyTree,
    batch: Batch,
    *,
    network: Network,
    hyper: Hyperparameters,
    ent_coef: Any,
    clips_value: bool = False,
    few_kernels: bool = False,
) -> tuple[Array, Scalars]:
    """PPO loss of a minibatch (policy + value - entropy bonus), and its parts by name.

    It is the loss of this device's share of the minibatch: means are taken over that share, but
    advantages are normalised over the shares of all devices.

    With `few_kernels` it is the same but for the order of sums: on CPU that would change runs, and
    TPUs take more kernels for it.

    The KL divergence from the policy that acted is estimated by (r - 1) - log r with the
    probability ratio r: unbiased, of low variance and never negative
    (http://joschu.net/blog/kl-approx.html).
    """
    samples = batch.samples
    logits, value = answers(network, params, batch)
    mask = distribution.unpack_mask(samples.mask, network.num_actions)
    if few_kernels:
        log_prob, entropies = distribution.evaluate_actions(logits, mask, samples.action)
    else:
        log_probs = distribution.log_probabilities(logits, mask)
        log_prob = distribution.log_probability(log_probs, samples.action)
        entropies = distribution.entropy(log_probs)
    log_ratio = log_prob - samples.stored["log_prob"]
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - hyper.clip_eps, 1 + hyper.clip_eps)
    assert batch.advantages is not None
    advantage = batch.advantages.normalised(samples.advantage, samples.tasks)

    if clips_value:
        change = jnp.clip(value - samples.value, -hyper.clip_value_loss, hyper.clip_value_loss)
        of_value = clipped_value_terms(value, samples.value + change, samples.returns)
    else:
        of_value = value_terms(network, value, samples.returns)
    choices = jax.lax.population_count(samples.mask) if few_kernels else jnp.sum(mask, axis=-1)
    means = (_means if few_kernels else _means_one_by_one)(
        {
            "gain": jnp.minimum(ratio * advantage, clipped * advantage),
            "value": of_value.each,
            "entropy": entropies,
            _OF_RANDOM_PLAY: jnp.log(jnp.maximum(choices.astype(jnp.int32), 1)),
            "approx_kl": (ratio - 1) - log_ratio,
            "clip_frac": jnp.abs(ratio - 1) > hyper.clip_eps,
        }
    )
    pg_loss, vf_loss = -means.pop("gain"), of_value.factor * means.pop("value")
    total = pg_loss + hyper.vf_coef * vf_loss - ent_coef * means["entropy"]
    return total, {"total_loss": total, "pg_loss": pg_loss, "vf_loss": vf_loss} | means


def _means(arrays: dict[str, Array]) -> Scalars:
    """The mean of each of the arrays, which have the same shape, by one sum over all of them."""
    means = jnp.mean(jnp.stack([array.reshape(-1) for array in arrays.values()]), axis=1)
    return dict(zip(arrays, means, strict=True))


def _means_one_by_one(arrays: dict[str, Array]) -> Scalars:
    return {name: jnp.mean(array) for name, array in arrays.items()}


class Terms(NamedTuple):
    """A loss: a factor times the mean of the terms of all samples."""

    factor: float
    each: Array


def value_loss(network: Network, values: Array, returns: Array) -> Array:
    """The loss of a network's values, float32[]."""
    terms = value_terms(network, values, returns)
    return terms.factor * jnp.mean(terms.each)


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


def learn(
    task: Task,
    weights: Weights,
    batch: Batch,
    keys: UpdateKeys,
    hyper: Hyperparameters,
    network_params: Callable[[PyTree], PyTree] = lambda params: params,
) -> Learned:
    """Learns from this device's share of a batch; see `Algorithm`."""
    config = task.config
    return gradient_steps(
        task,
        weights,
        batch,
        keys,
        hyper,
        network_params,
        loss=partial(
            loss,
            network=task.network,
            hyper=hyper,
            ent_coef=hyper.entropy_coef(keys.update),
            clips_value=config.clip_value_loss is not None,
            few_kernels=task.few_kernels,
        ),
        losses=LOSSES,
        measures_advantages=True,
        optimizer=optimizer(hyper.max_grad_norm, norm_with_copies(task)),
        scalars_of=_scalars,
        stop=None if config.target_kl is None else EarlyStop("approx_kl", hyper.target_kl),
    )


def _scalars(parts: Scalars) -> Scalars:
    """The parts of the loss, with the entropy as a part of that of random play.

    It is 1 where there is never a choice.
    """
    of_random_play = parts[_OF_RANDOM_PLAY]
    fraction = jnp.where(of_random_play > 0, parts["entropy"] / of_random_play, 1.0)
    rest = {name: part for name, part in parts.items() if name != _OF_RANDOM_PLAY}
    return rest | {"entropy_frac": fraction}
