"""Expert iteration (Anthony et al. 2017, arXiv:1705.08439): a network learns from its own search.

Before each action a search plays simulations on from the position, in games made up from what the
player has seen, and improves the network's policy by their returns. Games go on by the improved
policy, which the network learns, with the lambda-returns of these games as its values. So search
and network lift each other, as in AlphaZero (Silver et al. 2017, arXiv:1712.01815).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.search.model import Searcher
from hackmatrix.agents.search.rollouts import SearchSettings, improve
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.learning.ppo.algorithm import (
    Learned,
    PolicyOutput,
    SampledActions,
    Scalars,
    Weights,
)
from hackmatrix.learning.ppo.epochs import Batch, answers, gradient_steps, norm_with_copies
from hackmatrix.learning.ppo.hyperparameters import Hyperparameters
from hackmatrix.learning.ppo.keys import UpdateKeys
from hackmatrix.learning.ppo.setup import Task
from hackmatrix.learning.ppo.update import optimizer, value_loss

Array = jax.Array

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


def choose(
    task: Task, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
) -> SampledActions:
    """Samples from the policy that a search has improved; see `Algorithm`."""
    del update
    known, mask, words = position.known, position.mask, position.words
    assert known is not None  # as its row of the table says that it searches
    settings = SearchSettings.of(task.config.simulations, hyper.gamma)
    weight = jnp.broadcast_to(hyper.search_weight, words.shape)
    searcher = Searcher(task.imagination, task.network, settings, lambda _: weight)
    found, _ = searcher.search(params, known.memory, known.observations, mask, words)
    policy, expected = improve(found, mask, hyper.search_weight)
    action = distribution.sample(jnp.log(policy), mask, position.uniform)
    return SampledActions(action, {"policy": policy, "gain": expected - position.value})


def loss(
    params: PyTree, batch: Batch, *, network: Network, vf_coef: Array, ent_coef: Array
) -> tuple[Array, Scalars]:
    """Divergence from the search's policy + value loss - entropy bonus, and its parts by name."""
    samples = batch.samples
    logits, value = answers(network, params, batch)
    mask = distribution.unpack_mask(samples.mask, network.num_actions)
    log_probs = distribution.log_probabilities(logits, mask)
    found = samples.stored["policy"]
    divergence = jnp.mean(distribution.divergence(found, log_probs, mask))
    random = distribution.log_probabilities(jnp.zeros_like(log_probs), mask)
    vf_loss = value_loss(network, value, samples.returns)
    entropy = jnp.mean(distribution.entropy(log_probs))
    total = divergence + vf_coef * vf_loss - ent_coef * entropy
    return total, {
        "total_loss": total,
        "divergence": divergence,
        "vf_loss": vf_loss,
        "entropy": entropy,
        "search_information": jnp.mean(distribution.divergence(found, random, mask)),
        "search_gain": jnp.mean(samples.stored["gain"]),
    }


def learn(
    task: Task,
    weights: Weights,
    batch: Batch,
    keys: UpdateKeys,
    hyper: Hyperparameters,
    network_params: Callable[[PyTree], PyTree] = lambda params: params,
) -> Learned:
    """Learns from this device's share of a batch; see `Algorithm`."""
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
            vf_coef=hyper.vf_coef,
            ent_coef=hyper.entropy_coef(keys.update),
        ),
        losses=LOSSES,
        optimizer=optimizer(hyper.max_grad_norm, norm_with_copies(task)),
    )
