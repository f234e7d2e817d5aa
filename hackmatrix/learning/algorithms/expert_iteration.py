"""Expert iteration (Anthony et al. 2017, arXiv:1705.08439): a network learns from its own search.

Before each action a search plays simulations on from the position, in games made up from what the
player has seen, and improves the network's policy by their returns. Games go on by the improved
policy, which the network learns, with the lambda-returns of these games as its values. So search
and network lift each other, as in AlphaZero (Silver et al. 2017, arXiv:1712.01815).
"""

from typing import Any, cast

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.search.model import Searcher
from hackmatrix.agents.search.rollouts import SearchSettings, improve
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.learning.algorithms.config import ExpertIterationConfig
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
    value_loss,
    with_advantages,
)
from hackmatrix.learning.trainer.gradients import (
    clip_by_global_norm,
    learn_in_epochs,
    norm_with_copies,
)
from hackmatrix.learning.trainer.rollout import Rollout

Array = jax.Array


class ExpertIteration:
    """Learns the policy that a search improves, and the value of its games; see `Algorithm`."""

    Config = ExpertIterationConfig
    STORED = ("policy", "gain")  # the improved policy, and its return beyond the network's value
    LOSSES = ("divergence", "vf_loss", "entropy", "total_loss")
    SCALARS = (*LOSSES, "search_information", "search_gain", "explained_variance", "grad_norm")
    METRICS = (
        Metric(
            "train/divergence",
            Over.UPDATES,
            "KL divergence of the network's policy from the search's, nats, last epoch",
            shown=Shown("LEARNING", "divergence", ".4f", in_summary=True),
        ),
        Metric(
            "train/search_information",
            Over.UPDATES,
            "KL divergence of random play from the search's policy, nats: `train/divergence` of a "
            "network that has learned nothing",
        ),
        Metric(
            "train/search_gain",
            Over.UPDATES,
            "return that the search expects of its policy beyond the network's value",
            shown=Shown("LEARNING", "search gain", "+.4f"),
        ),
    )
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
        """Adam with eps 1e-5 after clipping by global norm; the learning rate comes after it."""
        clip = clip_by_global_norm(max_grad_norm, norm_with_copies(self.setup))
        return optax.chain(clip, optax.scale_by_adam(eps=1e-5))

    def choose(
        self, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
    ) -> SampledActions:
        """Samples from the policy that a search has improved; see `Algorithm`."""
        del update
        setup, mask, seeds = self.setup, position.mask, position.seeds
        information = position.information
        config = cast(ExpertIterationConfig, setup.config)
        assert information is not None  # as its row of the table says that it searches
        settings = SearchSettings.of(config.simulations, hyper.gamma)
        weight = jnp.broadcast_to(hyper.search_weight, seeds.shape)
        searcher = Searcher(setup.imagination, setup.network, settings, lambda _: weight)
        result, _ = searcher.search(
            params, information.memory, information.observations, mask, seeds
        )
        policy, expected = improve(result, mask, hyper.search_weight)
        action = distribution.sample(jnp.log(policy), mask, position.uniform)
        return SampledActions(action, {"policy": policy, "gain": expected - position.value})

    def update(self, state: LearnerState, rollout: Rollout, context: UpdateContext) -> Learned:
        """Learns from a rollout in some epochs of minibatches; see `Algorithm`."""
        hyper = context.hyper
        ent_coef = hyper.entropy_coef(context.keys.update)
        return learn_in_epochs(
            *(self.setup, state, with_advantages(rollout, hyper), context),
            loss=lambda params, minibatch: self.loss(params, minibatch, hyper.vf_coef, ent_coef),
            losses=self.LOSSES,
            optimizer=self.optimizer(hyper.max_grad_norm),
        )

    def loss(
        self, params: PyTree, batch: Batch, vf_coef: Any, ent_coef: Any
    ) -> tuple[Array, Scalars]:
        """Divergence from the search's policy + value loss - entropy bonus, and its parts."""
        samples, network = batch.samples, self.setup.network
        logits, value = apply_network(network, params, batch)
        mask = distribution.unpack_mask(samples.mask, network.num_actions)
        log_probs = distribution.log_probabilities(logits, mask)
        target = samples.stored["policy"]
        divergence = jnp.mean(distribution.divergence(target, log_probs, mask))
        random = distribution.log_probabilities(jnp.zeros_like(log_probs), mask)
        vf_loss = value_loss(network, value, samples.returns)
        entropy = jnp.mean(distribution.entropy(log_probs))
        total = divergence + vf_coef * vf_loss - ent_coef * entropy
        return total, {
            "total_loss": total,
            "divergence": divergence,
            "vf_loss": vf_loss,
            "entropy": entropy,
            "search_information": jnp.mean(distribution.divergence(target, random, mask)),
            "search_gain": jnp.mean(samples.stored["gain"]),
        }
