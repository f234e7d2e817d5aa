"""The interface of networks for the learner and the players, and the function that makes one."""

import importlib
from typing import Protocol

import jax
import jax.numpy as jnp

from hackmatrix.agents.architectures import ARCHITECTURES, NetworkConfig
from hackmatrix.interface.environment import Environment, PyTree

Array = jax.Array


class Network(Protocol):
    """Maps the observations of B games to logits and values.

    A recurrent network has a carry for each game: a pytree of arrays with the leading axis B. The
    carry of other networks is the empty tree `()`.
    """

    num_actions: int
    recurrent: bool
    # Whether the layer `params["params"]["Dense_0"]` reads `Environment.features`: then features
    # can be normalised by changing that layer, see `agents/normalisation.py`.
    reads_features: bool

    def init(self, key: Array) -> PyTree:
        """Freshly initialised params: nested dicts of float32 arrays."""

    def initial_carry(self, num_games: int) -> PyTree:
        """The carry at the start of `num_games` episodes."""

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        """Logits float32[B, A] and values float32[B] of B observations, and the next carry."""


def make_network(env: Environment, config: NetworkConfig) -> Network:
    """Makes the network that `config` describes for this environment."""
    module = importlib.import_module(ARCHITECTURES[config.architecture].module)
    network: Network = module.make(env, config)
    return network


def restarted(network: Network, carry: PyTree, starts: Array) -> PyTree:
    """The carry of B games, reset to the initial one where an episode starts (bool[B])."""
    if not network.recurrent:
        return carry
    first = network.initial_carry(starts.shape[0])
    return jax.tree.map(
        lambda new, old: jnp.where(starts.reshape(-1, *[1] * (new.ndim - 1)), new, old),
        first,
        carry,
    )


def unroll(
    network: Network, params: PyTree, observations: PyTree, starts: Array, carry: PyTree
) -> tuple[Array, Array]:
    """Logits float32[T, B, A] and values float32[T, B] of T steps of B games.

    Args:
        network: a recurrent one.
        params: its params.
        observations: arrays [T, B, ...].
        starts: bool[T, B], whether a step is the first of its episode.
        carry: the carry before the first step.
    """

    def step(carry: PyTree, now: tuple[PyTree, Array]) -> tuple[PyTree, tuple[Array, Array]]:
        observation, starting = now
        carry = restarted(network, carry, starting)
        logits, values, carry = network(params, observation, carry)
        return carry, (logits, values)

    _, outputs = jax.lax.scan(step, carry, (observations, starts))
    return outputs
