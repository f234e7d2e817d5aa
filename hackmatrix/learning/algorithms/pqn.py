"""PQN: Q-learning without replay or target network (Gallici et al. 2024, arXiv:2407.04811).

It learns Q(lambda) returns of the rollout just played, in epochs of minibatches as PPO does; layer
normalisation in the network keeps it stable. The network's value is the largest Q of the valid
actions, and its logits are advantages in units of a temperature:

    Q(s, a) = value(s) + TEMPERATURE * (logit(s, a) - max over the valid b of logit(s, b))

(the dueling form of Wang et al. 2016, arXiv:1511.06581, eq. 8). So the value of a final observation
needs no mask, and whoever reads a network's logits as a policy sees the softmax of Q with this
temperature, in units of scaled rewards.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.learning.algorithms.config import PQNConfig
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
    with_advantages,
)
from hackmatrix.learning.trainer.gradients import (
    clip_by_global_norm,
    learn_in_epochs,
    norm_with_copies,
)
from hackmatrix.learning.trainer.rollout import Rollout

Array = jax.Array

TEMPERATURE = 0.1


class PQN:
    """Q-learning on the rollout just played; see `Algorithm`."""

    Config = PQNConfig
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
        """Rectified Adam after clipping by global norm; the learning rate comes after it."""
        clip = clip_by_global_norm(max_grad_norm, norm_with_copies(self.setup))
        return optax.chain(clip, optax.scale_by_radam())

    def choose(
        self, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
    ) -> SampledActions:
        """Takes the best valid action, or with chance epsilon any valid one; see `Algorithm`."""
        del params
        action = distribution.epsilon_greedy(
            position.logits, position.mask, hyper.epsilon(update), position.uniform
        )
        return SampledActions(action, {})

    def update(self, state: LearnerState, rollout: Rollout, context: UpdateContext) -> Learned:
        """Learns from a rollout in some epochs of minibatches; see `Algorithm`."""
        hyper = context.hyper
        learned = learn_in_epochs(
            *(self.setup, state, with_advantages(rollout, hyper), context),
            loss=self.loss,
            losses=self.LOSSES,
            optimizer=self.optimizer(hyper.max_grad_norm),
        )
        epsilon = {"epsilon": hyper.epsilon(context.keys.update)}
        return learned._replace(scalars=learned.scalars | epsilon)

    def loss(self, params: PyTree, batch: Batch) -> tuple[Array, Scalars]:
        """Half the mean squared difference of Q from the Q(lambda) returns (Peng's).

        The values of the rollout are the largest Q, so its lambda-returns are the targets.
        """
        samples, network = batch.samples, self.setup.network
        logits, value = apply_network(network, params, batch)
        mask = distribution.unpack_mask(samples.mask, network.num_actions)
        error = q_values(logits, value, mask, samples.action) - samples.returns
        td_loss = 0.5 * jnp.mean(error**2)
        return td_loss, {"td_loss": td_loss}


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
