"""The interface of learning algorithms for the trainer, which does all that they share.

The trainer plays rollouts, scales rewards, keeps the training state and sums metrics. An algorithm
is a module that has the members of `Algorithm`, and a row of `agents/networks/algorithms.py`.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import optax

from hackmatrix.agents.networks.algorithms import ALGORITHMS
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.learning.ppo.hyperparameters import Hyperparameters

Array = jax.Array
Scalars = dict[str, Array]


class Known(NamedTuple):
    """Knowledge of the players of N games, for an algorithm that searches; see `Imagination`."""

    observations: PyTree  # as the environment gives them
    memory: PyTree  # with these observations


class PolicyOutput(NamedTuple):
    """N games before an action, and what the network says of them."""

    logits: Array  # float32[N, A]
    value: Array  # float32[N]
    mask: Array  # bool[N, A], the valid actions
    uniform: Array  # float32[N], random, from 0 to 1
    known: Known | None  # None unless the algorithm searches
    words: Array  # uint32[N], random, for what a search makes up


class SampledActions(NamedTuple):
    """The actions of N games."""

    action: Array  # int32[N]
    stored: dict[str, Array]  # float32[N, ...] by name: what the algorithm keeps of each


class Weights(NamedTuple):
    """Params and optimizer state, which gradient steps change."""

    params: PyTree
    opt_state: optax.OptState


class Learned(NamedTuple):
    """Result of one update."""

    weights: Weights
    scalars: Scalars  # the algorithm's `SCALARS`: means over the minibatches of the last epoch
    anomalies: Array | None  # int32[S], for each step of the optimizer; None: nothing is searched


class Algorithm(Protocol):
    """The members of an algorithm's module."""

    STORED: tuple[str, ...]  # names of what a transition stores for it besides what all store
    SCALARS: tuple[str, ...]  # names of what an update measures: metrics without their `train/`
    LOSSES: tuple[str, ...]  # those of them that are searched for NaN and infinity
    METRICS: tuple[Metric, ...]  # rows for those of them that `LEARNER_METRICS` lacks

    def optimizer(self, max_grad_norm: Any) -> optax.GradientTransformation:
        """Makes gradients into directions, to be scaled by the learning rate; its state is kept."""

    def choose(
        self,
        task: Any,
        params: PyTree,
        position: PolicyOutput,
        hyper: Hyperparameters,
        update: Array,
    ) -> SampledActions:
        """The actions of a rollout.

        Args:
            task: the `Task`.
            params: those that the network is applied with.
            position: where the games are.
            hyper: settings that are inputs of the update.
            update: int32[], updates made before.
        """

    def learn(
        self,
        task: Any,
        weights: Weights,
        batch: Any,
        keys: Any,
        hyper: Hyperparameters,
        network_params: Callable[[PyTree], PyTree],
    ) -> Learned:
        """Learns from this device's share of a batch.

        Args:
            task: the `Task`.
            weights: params and optimizer state before the update.
            batch: the `Batch` of this device's games.
            keys: the `UpdateKeys`.
            hyper: settings that are inputs of the update.
            network_params: maps the learned params to those that the network is applied with.
        """


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of this name."""
    module: Any = importlib.import_module(ALGORITHMS[name].module)
    algorithm: Algorithm = module
    return algorithm
