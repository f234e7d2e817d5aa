"""Players to evaluate: a trained policy, also with search, and two built-in ones."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import Network, encoded
from hackmatrix.agents.search.model import Searcher
from hackmatrix.agents.search.undo_history import Memory
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.game.rules.board import DIRECTIONS, NEIGHBOUR
from hackmatrix.game.rules.observation import MAX_DISTANCE, CellBytes, number_of

Array = jax.Array


class Player(NamedTuple):
    """Chooses the actions of N games.

    `choose(params, carry, observations, masks bool[N, A], uniforms float32[N])` returns valid
    actions int32[N] and the next carry; `initial_carry(N)` is the first carry, `()` for players
    without memory. It is compiled once for all params.
    """

    name: str
    params: PyTree
    choose: Callable[[PyTree, PyTree, PyTree, Array, Array], tuple[Array, PyTree]]
    initial_carry: Callable[[int], PyTree] = lambda _: ()


def network_player(name: str, network: Network, params: PyTree, *, greedy: bool) -> Player:
    """A player that samples from a network's distribution, or takes its most probable action."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, uniforms: Array
    ) -> tuple[Array, PyTree]:
        logits, _, carry = network(params, encoded(network, observations), carry)
        log_probs = distribution.log_probabilities(logits, masks)
        if greedy:
            return distribution.most_probable(log_probs, masks), carry
        return distribution.sample(log_probs, masks, uniforms), carry

    return Player(name, params, choose, network.initial_carry)


def search_player(name: str, searcher: Searcher, params: PyTree) -> Player:
    """A player that searches on games made up from what it sees and has seen (`agents/search/`)."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, uniforms: Array
    ) -> tuple[Array, PyTree]:
        memory = carry.after(observations)
        words = jax.lax.bitcast_convert_type(uniforms, jnp.uint32)
        _, actions = searcher.search(params, memory, observations, masks, words)
        return actions, memory

    return Player(name, params, choose, Memory.empty)


def random_player() -> Player:
    """A player for which each valid action is equally likely."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, uniforms: Array
    ) -> tuple[Array, PyTree]:
        del params, observations
        log_probs = distribution.log_probabilities(jnp.zeros(masks.shape), masks)
        return distribution.sample(log_probs, masks, uniforms), carry

    return Player("random", (), choose)


def exit_player() -> Player:
    """A player that walks the shortest way to the exit of HackMatrix and attacks what blocks it.

    Among the valid directions it takes the one whose neighbour is nearest to the exit by walking.
    Where no direction is valid it takes the first valid action.
    """
    neighbours = np.array([[-1 if c is None else c for c in row] for row in NEIGHBOUR])

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, uniforms: Array
    ) -> tuple[Array, PyTree]:
        del params, uniforms
        around = jnp.asarray(neighbours)[number_of(observations, "cell")]  # [N, 4]
        distances = CellBytes.of(observations).field("exit_distance")  # [N, 36]
        distance = jnp.take_along_axis(distances, jnp.maximum(around, 0), axis=1)
        distance = jnp.where(masks[:, : len(DIRECTIONS)], distance, MAX_DISTANCE + 1)
        can_walk = jnp.any(masks[:, : len(DIRECTIONS)], axis=1)
        walk, first = jnp.argmin(distance, axis=1), jnp.argmax(masks, axis=1)
        return jnp.where(can_walk, walk, first), carry

    return Player("exit", (), choose)
