"""Agents as players of many games at once: networks, searches with them, and random play."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import Network, encoded
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.agents.search.model import Searcher
from hackmatrix.agents.search.undo_history import Memory
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.registry import environment_id, make_environment, own_code

Array = jax.Array
_SEARCHED_AT_ONCE = 256  # games; with fewer a move costs more, with more the last ones take longer


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
    places: int = 1024  # games at once


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

    return Player(name, params, choose, Memory.empty, _SEARCHED_AT_ONCE)


def random_player() -> Player:
    """A player for which each valid action is equally likely."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, uniforms: Array
    ) -> tuple[Array, PyTree]:
        del params, observations
        log_probs = distribution.log_probabilities(jnp.zeros(masks.shape), masks)
        return distribution.sample(log_probs, masks, uniforms), carry

    return Player("random", (), choose)


class Seated(NamedTuple):
    """A player, and what it plays."""

    environment: str  # id
    env: Environment
    player: Player


def player_of(agent: AgentName, env: str, *, greedy: bool) -> Seated:
    """The player of an agent that plays in JAX; the others go by a rule (`built_in.py`).

    Args:
        agent: its name.
        env: the environment that the user names.
        greedy: whether a network takes its most probable action.

    Raises:
        UserError: its params are damaged, or don't fit the environment or a search.
    """
    if agent.params is None:
        return Seated(environment_id(env), make_environment(env), random_player())
    policy = load_policy(agent.params)
    check_named(policy, env)
    if agent.simulations is None:
        made, network = policy.make(env)
        player = network_player(str(agent), network, policy.params, greedy=greedy)
        return Seated(policy.environment, made, player)
    if greedy:
        raise UserError(f"{agent}: a search goes without --greedy")
    searcher = Searcher.of(policy, agent.simulations)
    made = make_environment(policy.environment, policy.observation)
    return Seated(policy.environment, made, search_player(str(agent), searcher, policy.params))


def check_named(policy: Policy, env: str) -> None:
    """Raises `UserError` if the user names an environment of their own, and params play another."""
    if own_code(env) and environment_id(env) != policy.environment:
        raise UserError(f"{policy.path}: plays {policy.environment!r:.80}, not {env}")
