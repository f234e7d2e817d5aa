"""PPO (Schulman et al. 2017, https://arxiv.org/abs/1707.06347).

The trainer plays `num_steps` steps in each game with `PPO.choose` and hands the rollout, with
rewards scaled, to `PPO.update`. docs/training.md says what differs from CleanRL's implementation.
"""

from typing import Any, cast

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.algorithm import (
    Hyperparameters,
    Learned,
    LearnerState,
    PolicyOutput,
    SampledActions,
    Scalars,
    Setup,
    UpdateContext,
)
from hackmatrix.learning.trainer.batches import (
    Batch,
    apply_network,
    clipped_value_terms,
    value_terms,
    with_advantages,
)
from hackmatrix.learning.trainer.gradients import (
    EarlyStop,
    clip_by_global_norm,
    learn_in_epochs,
    norm_with_copies,
)
from hackmatrix.learning.trainer.rollout import Rollout

Array = jax.Array

_ENTROPY_OF_RANDOM_PLAY = "entropy_of_random_play"  # one of the parts of a loss


class PPO:
    """Proximal policy optimization with a clipped ratio; see `Algorithm`."""

    Config = PPOConfig
    STORED = ("log_prob",)  # of the policy that acted
    LOSSES = ("pg_loss", "vf_loss", "entropy", "total_loss")
    SCALARS = (
        *LOSSES,
        *("entropy_frac", "approx_kl", "clip_frac", "explained_variance", "grad_norm"),
    )
    METRICS: tuple[Metric, ...] = ()
    PER_GAME: tuple[str, ...] = ()

    def __init__(self, setup: Setup) -> None:
        """An algorithm without state: what it learns is in the `LearnerState`."""
        self.setup = setup

    def init(self, params: PyTree, num_envs: int) -> LearnerState:
        """The state at the start of a run; see `Algorithm`."""
        del num_envs
        max_grad_norm = self.setup.config.max_grad_norm
        return LearnerState(params, self.optimizer(max_grad_norm).init(params))

    def optimizer(self, max_grad_norm: Any) -> optax.GradientTransformation:
        """Adam with eps 1e-5 after clipping by global norm.

        It makes directions; `gradient_step` multiplies them by the learning rate.
        """
        clip = clip_by_global_norm(max_grad_norm, norm_with_copies(self.setup))
        return optax.chain(clip, optax.scale_by_adam(eps=1e-5))

    def choose(
        self, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
    ) -> SampledActions:
        """Samples from the policy; see `Algorithm`."""
        del params, hyper, update
        log_probs = distribution.log_probabilities(position.logits, position.mask)
        action = distribution.sample(log_probs, position.mask, position.uniform)
        return SampledActions(action, {"log_prob": distribution.log_probability(log_probs, action)})

    def update(self, state: LearnerState, rollout: Rollout, context: UpdateContext) -> Learned:
        """Learns from a rollout in some epochs of minibatches; see `Algorithm`."""
        config, hyper = cast(PPOConfig, self.setup.config), context.hyper
        ent_coef = hyper.entropy_coef(context.keys.update)
        return learn_in_epochs(
            *(self.setup, state, with_advantages(rollout, hyper), context),
            loss=lambda params, minibatch: self.loss(params, minibatch, hyper, ent_coef),
            losses=self.LOSSES,
            optimizer=self.optimizer(hyper.max_grad_norm),
            scalars_of=_scalars,
            measure_advantages=True,
            stop=None if config.target_kl is None else EarlyStop("approx_kl", hyper.target_kl),
        )

    def loss(
        self, params: PyTree, batch: Batch, hyper: Hyperparameters, ent_coef: Any
    ) -> tuple[Array, Scalars]:
        """PPO loss of a minibatch (policy + value - entropy bonus), and its parts by name.

        It is the loss of this device's share of the minibatch: means are taken over that share, but
        advantages are normalised over the shares of all devices.

        On GPUs (`Setup.few_kernels`) it is the same but for the order of sums: on CPU that would
        change runs, and TPUs take more kernels for it.

        The KL divergence from the policy that acted is estimated by (r - 1) - log r with the
        probability ratio r: unbiased, of low variance and never negative
        (http://joschu.net/blog/kl-approx.html).
        """
        samples, network, few_kernels = batch.samples, self.setup.network, self.setup.few_kernels
        config = cast(PPOConfig, self.setup.config)
        logits, value = apply_network(network, params, batch)
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
        assert batch.advantage_spread is not None
        advantage = batch.advantage_spread.normalised(samples.advantage, samples.tasks)

        if config.clip_value_loss is not None:
            change = jnp.clip(value - samples.value, -hyper.clip_value_loss, hyper.clip_value_loss)
            of_value = clipped_value_terms(value, samples.value + change, samples.returns)
        else:
            of_value = value_terms(network, value, samples.returns)
        choices = jax.lax.population_count(samples.mask) if few_kernels else jnp.sum(mask, axis=-1)
        means = (_means if few_kernels else _means_one_by_one)(
            {
                "gain": jnp.minimum(ratio * advantage, clipped * advantage),
                "value": of_value.per_sample,
                "entropy": entropies,
                _ENTROPY_OF_RANDOM_PLAY: jnp.log(jnp.maximum(choices.astype(jnp.int32), 1)),
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


def _scalars(parts: Scalars) -> Scalars:
    """The parts of the loss, with the entropy as a part of that of random play.

    It is 1 where there is never a choice.
    """
    of_random_play = parts[_ENTROPY_OF_RANDOM_PLAY]
    fraction = jnp.where(of_random_play > 0, parts["entropy"] / of_random_play, 1.0)
    rest = {name: part for name, part in parts.items() if name != _ENTROPY_OF_RANDOM_PLAY}
    return rest | {"entropy_frac": fraction}
