"""PQN: Q-learning without replay or target network (Gallici et al. 2024, arXiv:2407.04811).

It learns Q(lambda) returns of the rollout just played, in epochs of minibatches as PPO does; layer
normalisation in the network keeps it stable. The network's value is the largest Q of the valid
actions, and its logits are advantages in units of a temperature:

    Q(s, a) = value(s) + TEMPERATURE * (logit(s, a) - max over the valid b of logit(s, b))

(the dueling form of Wang et al. 2016, arXiv:1511.06581, eq. 8). So the value of a final observation
needs no mask, and whoever reads a network's logits as a policy sees the softmax of Q with this
temperature, in units of scaled rewards.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.learning.ppo.algorithm import (
    Learned,
    PolicyOutput,
    SampledActions,
    Scalars,
    Weights,
)
from hackmatrix.learning.ppo.epochs import (
    Batch,
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

TEMPERATURE = 0.1

STORED: tuple[str, ...] = ()
LOSSES = ("td_loss",)
SCALARS = ("td_loss", "epsilon", "explained_variance", "grad_norm")
METRICS = (
    Metric(
        "train/td_loss",
        Over.UPDATES,
        "half the squared error of Q, in scaled rewards, last epoch",
        shown=Shown("LEARNING", "TD loss", ".4f", in_summary=True),
    ),
    Metric(
        "train/epsilon",
        Over.UPDATES,
        "chance of a random valid action",
        shown=Shown("LEARNING", "epsilon", ".3f", in_summary=True),
    ),
)


def optimizer(max_grad_norm: Any, norm: Norm = optax.tree.norm) -> optax.GradientTransformation:
    """Rectified Adam after clipping by global norm; the learning rate is applied by `learn`."""
    return optax.chain(clip_by_global_norm(max_grad_norm, norm), optax.scale_by_radam())


def choose(
    task: Task, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
) -> SampledActions:
    """Takes the best valid action, or with chance epsilon any valid one; see `Algorithm`."""
    del task, params
    logits, mask, uniform = position.logits, position.mask, position.uniform
    epsilon = hyper.epsilon(update)
    alike = distribution.log_probabilities(jnp.zeros_like(logits), mask)
    # Where the number is below epsilon, it is uniform from 0 to epsilon; the limit is that of the
    # numbers that `sample` takes.
    rescaled = jnp.minimum(uniform / jnp.maximum(epsilon, 1e-9), 1 - 2**-23)
    any_valid = distribution.sample(alike, mask, rescaled)
    best = distribution.most_probable(logits, mask)
    return SampledActions(jnp.where(uniform < epsilon, any_valid, best), {})


def q_values(logits: Array, value: Array, mask: Array, action: Array) -> Array:
    """Q of valid actions, float32[...], of the outputs of a network.

    Args:
        logits: float32[..., A].
        value: float32[...].
        mask: bool[..., A], the valid actions.
        action: integers [...].
    """
    best = jnp.max(jnp.where(mask, logits, -jnp.inf), axis=-1)
    return value + TEMPERATURE * (distribution.log_probability(logits, action) - best)


def loss(params: PyTree, batch: Batch, *, network: Network) -> tuple[Array, Scalars]:
    """Half the mean squared difference of Q from the Q(lambda) returns (Peng's).

    The values of the rollout are the largest Q, so its lambda-returns are the targets.
    """
    samples = batch.samples
    logits, value = answers(network, params, batch)
    mask = distribution.unpack_mask(samples.mask, network.num_actions)
    error = q_values(logits, value, mask, samples.action) - samples.returns
    td_loss = 0.5 * jnp.mean(error**2)
    return td_loss, {"td_loss": td_loss}


def learn(
    task: Task,
    weights: Weights,
    batch: Batch,
    keys: UpdateKeys,
    hyper: Hyperparameters,
    network_params: Callable[[PyTree], PyTree] = lambda params: params,
) -> Learned:
    """Learns from this device's share of a batch; see `Algorithm`."""
    learned = gradient_steps(
        task,
        weights,
        batch,
        keys,
        hyper,
        network_params,
        loss=partial(loss, network=task.network),
        losses=LOSSES,
        optimizer=optimizer(hyper.max_grad_norm, norm_with_copies(task)),
    )
    epsilon = {"epsilon": hyper.epsilon(keys.update)}
    return learned._replace(scalars=learned.scalars | epsilon)
