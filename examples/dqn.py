"""DQN (Mnih et al. 2015) as an algorithm of one's own, with a replay and a target network.

    hackmatrix train --env CartPole-v1 --algorithm dqn:DQN --num-envs 8 --num-steps 8 ...

Double (van Hasselt et al. 2016, arXiv:1509.06461), and masked: only valid actions are chosen and
looked ahead to. As in PQN (`hackmatrix/learning/algorithms/pqn.py`), Q is read off the network's
logits and value, so that any network of the package learns by it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import jax
import jax.numpy as jnp
import optax
from flax import struct

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import ALGORITHM_NAMES
from hackmatrix.agents.networks.network import encode_observations
from hackmatrix.core.devices import mesh
from hackmatrix.core.options import option
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.learning.algorithms.config import PQNConfig
from hackmatrix.learning.algorithms.pqn import q_values
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
from hackmatrix.learning.trainer.gradients import StepMetrics, clip_by_global_norm, gradient_step
from hackmatrix.learning.trainer.keys import Purpose
from hackmatrix.learning.trainer.rollout import Rollout

Array = jax.Array


@dataclass(frozen=True)
class DQNConfig(PQNConfig):
    """Settings of DQN; those of its exploration are PQN's."""

    algorithm: str = option("dqn:DQN", "", choices=ALGORITHM_NAMES)
    replay_size: int = option(65_536, "transitions in the replay", at_least=1)
    learning_starts: int = option(2_048, "transitions before anything is learned", at_least=1)
    batch_size_of_replay: int = option(256, "transitions of a gradient step", at_least=1)
    gradient_steps: int = option(4, "gradient steps of an update", at_least=1)
    target_interval: int = option(50, "updates between copies to the target network", at_least=1)


class Replay(struct.PyTreeNode):
    """The last R transitions of each game; arrays begin with [N, R]."""

    obs: PyTree
    mask: Array  # uint32
    action: Array  # uint8
    reward: Array  # float32, scaled as they were when they were played
    next_obs: PyTree
    next_mask: Array  # uint32
    terminated: Array  # bool
    valid: Array  # bool, whether the step after is known: False where an episode was cut off


class DQNState(LearnerState):
    """Params and optimizer state, the target network's params, and the replay."""

    target: PyTree
    replay: Replay


class DQN:
    """Deep Q-learning; see `Algorithm`."""

    Config = DQNConfig
    GREEDY = True
    SETTINGS: ClassVar[dict[str, Any]] = {"layer_norm": False, "num_steps": 8, "lr": 1e-3}
    STORED: tuple[str, ...] = ()
    LOSSES = ("td_loss",)
    SCALARS = ("td_loss", "mean_q", "epsilon", "grad_norm")
    METRICS = (
        Metric(
            "train/td_loss",
            Over.UPDATES,
            "half the squared error of Q, in scaled rewards",
            shown=Shown("LEARNING", "TD loss", ".4f", in_summary=True),
        ),
        Metric("train/mean_q", Over.UPDATES, "mean Q of the actions in the replay"),
        Metric("train/epsilon", Over.UPDATES, "chance of a random valid action"),
    )
    PER_GAME = ("replay",)

    def __init__(self, setup: Setup) -> None:
        """An algorithm without state: what it learns is in the `DQNState`."""
        self.setup = setup
        self.config = cast(DQNConfig, setup.config)

    def optimizer(self, max_grad_norm: Any) -> optax.GradientTransformation:
        """Adam after clipping by global norm; the learning rate comes after it."""
        return optax.chain(clip_by_global_norm(max_grad_norm), optax.scale_by_adam())

    def init(self, params: PyTree, num_envs: int) -> DQNState:
        """An empty replay; the target network is the first one."""
        length = max(self.config.num_steps, self.config.replay_size // self.config.num_envs)
        env, network = self.setup.env, self.setup.network

        def first_observation() -> PyTree:
            return encode_observations(network, jax.vmap(env.reset)(jax.random.key(0)[None])[0])

        obs = jax.eval_shape(first_observation)
        empty = jax.tree.map(lambda x: jnp.zeros((num_envs, length, *x.shape[1:]), x.dtype), obs)
        zeros = jnp.zeros((num_envs, length))
        masks, nothing = zeros.astype(jnp.uint32), zeros.astype(bool)
        replay = Replay(
            empty, masks, zeros.astype(jnp.uint8), zeros, empty, masks, nothing, nothing
        )
        opt_state = self.optimizer(self.config.max_grad_norm).init(params)
        return DQNState(params=params, opt_state=opt_state, target=params, replay=replay)

    def choose(
        self, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
    ) -> SampledActions:
        """Takes the best valid action, or with chance epsilon any valid one."""
        del params
        action = distribution.epsilon_greedy(
            position.logits, position.mask, hyper.epsilon(update), position.uniform
        )
        return SampledActions(action, {})

    def update(self, state: DQNState, rollout: Rollout, context: UpdateContext) -> Learned:
        """Puts the rollout into the replay, then makes some gradient steps on samples of it."""
        config, keys, hyper = self.config, context.keys, context.hyper
        replay = _extend(state.replay, rollout)
        length, num_steps = replay.action.shape[1], config.num_steps
        filled = jnp.minimum((keys.update + 1) * num_steps, length)
        optimizer = self.optimizer(hyper.max_grad_norm)
        target = context.network_params(state.target)

        def loss(params: PyTree, batch: Replay) -> tuple[Array, Scalars]:
            return self.loss(params, target, batch, hyper.gamma)

        def step(state: DQNState, number: Array) -> tuple[DQNState, StepMetrics]:
            batch = self._sample(replay, filled, context, number)
            return gradient_step(
                *(self.setup, state, jax.tree.map(lambda x: x[None], batch), context),
                loss=loss,
                losses=self.LOSSES,
                optimizer=optimizer,
            )

        learned, metrics = jax.lax.scan(
            step, state.replace(replay=None), jnp.arange(config.gradient_steps)
        )
        starts = filled * config.num_envs >= min(config.learning_starts, length * config.num_envs)
        learned = jax.tree.map(
            lambda new, old: jnp.where(starts, new, old), learned, state.replace(replay=None)
        )
        is_due = keys.update % config.target_interval == 0
        copied = jax.tree.map(lambda p, t: jnp.where(is_due, p, t), learned.params, learned.target)
        scalars = metrics.means() | {"epsilon": hyper.epsilon(keys.update)}
        return Learned(learned.replace(target=copied, replay=replay), scalars, metrics.anomaly)

    def loss(
        self, params: PyTree, target: PyTree, batch: Replay, gamma: Array
    ) -> tuple[Array, Scalars]:
        """Half the mean squared error of Q from one reward and the target network's next Q."""
        network = self.setup.network
        mask, next_mask = (
            distribution.unpack_mask(masks, network.num_actions)
            for masks in (batch.mask, batch.next_mask)
        )
        next_logits, _, _ = network(params, batch.next_obs)
        best = distribution.most_probable(next_logits, next_mask)
        logits, value, _ = network(target, batch.next_obs)
        following = q_values(logits, value, next_mask, best)
        returns = batch.reward + gamma * jnp.where(batch.terminated, 0.0, following)
        logits, value, _ = network(params, batch.obs)
        q = q_values(logits, value, mask, batch.action)
        error = jnp.where(batch.valid, q - jax.lax.stop_gradient(returns), 0.0)
        td_loss = 0.5 * jnp.mean(error**2)
        return td_loss, {"td_loss": td_loss, "mean_q": jnp.mean(q)}

    def _sample(
        self, replay: Replay, filled: Array, context: UpdateContext, number: Array
    ) -> Replay:
        """Transitions of this device's games, drawn with replacement."""
        num_envs, length = replay.action.shape
        share = self.config.batch_size_of_replay * num_envs // self.config.num_envs
        key = jax.random.fold_in(
            context.keys.one(Purpose.SHUFFLE, number), mesh.first_index(num_envs)
        )
        games, steps = jax.random.split(key)
        game = jax.random.randint(games, (share,), 0, num_envs)
        step = length - 1 - jax.random.randint(steps, (share,), 0, filled)
        batch: Replay = jax.tree.map(lambda x: x[game, step], replay)
        return batch


def _extend(replay: Replay, rollout: Rollout) -> Replay:
    """The replay with the rollout at its end, in place of its oldest transitions.

    A rollout's last step has no step after it here, so it is left out of what is learned; so is
    one that ended by a time limit, as its final observation is not kept.
    """
    steps = rollout.steps
    last = jnp.zeros_like(steps.terminated).at[-1].set(True)
    new = Replay(
        obs=steps.obs,
        mask=steps.mask,
        action=steps.action,
        reward=steps.reward,
        next_obs=jax.tree.map(lambda x: jnp.roll(x, -1, axis=0), steps.obs),
        next_mask=jnp.roll(steps.mask, -1, axis=0),
        terminated=steps.terminated,
        valid=steps.terminated | ~(steps.truncated | last),
    )

    def extended(old: Array, new: Array) -> Array:
        """Of [N, R, ...] and [T, N, ...]."""
        return jnp.concatenate([old[:, len(new) :], jnp.moveaxis(new, 0, 1)], axis=1)

    result: Replay = jax.tree.map(extended, replay, new)
    return result
