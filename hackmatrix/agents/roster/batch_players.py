"""Agents as players of many games at once: networks, searches with them, and random play."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import Network, encode_observations
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.agents.search.model import Searcher
from hackmatrix.core.errors import UserError
from hackmatrix.core.processes import num_cores
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.registry import environment_id, make_environment, own_code

Array = jax.Array
_SEARCHED_AT_ONCE = 512  # games; with fewer a move costs more, with more the last ones take longer


class BatchPlayer(NamedTuple):
    """Chooses the actions of N games.

    `choose(params, carry, observations, masks bool[N, A], keys [N])` returns actions int32[N] and
    the next carry; only a user's function may return actions that are not valid. Where no action is
    valid, none is asked for: a game has ended, and the others go on.
    `initial_carry(N)` is the first carry, `()` for players without memory. It is compiled once for
    all params.
    """

    name: str
    params: PyTree
    choose: Callable[[PyTree, PyTree, PyTree, Array, Array], tuple[Array, PyTree]]
    initial_carry: Callable[[int], PyTree] = lambda _: ()
    games_at_once: int = 1024  # games at once
    threads: int = 1  # that share the games, where its programs occupy one core each


def network_player(name: str, network: Network, params: PyTree, *, greedy: bool) -> BatchPlayer:
    """A player that samples from a network's distribution, or takes its most probable action."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, keys: Array
    ) -> tuple[Array, PyTree]:
        logits, _, carry = network(params, encode_observations(network, observations), carry)
        log_probs = distribution.log_probabilities(logits, masks)
        if greedy:
            return distribution.most_probable(log_probs, masks), carry
        return distribution.sample(log_probs, masks, _uniforms(keys)), carry

    return BatchPlayer(name, params, choose, network.initial_carry)


def search_player(name: str, searcher: Searcher, params: PyTree) -> BatchPlayer:
    """A player that searches on games made up from what it sees and has seen (`agents/search/`)."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, keys: Array
    ) -> tuple[Array, PyTree]:
        memory = searcher.imagination.after(carry, observations)
        words = jax.lax.bitcast_convert_type(_uniforms(keys), jnp.uint32)
        _, actions = searcher.search(params, memory, observations, masks, words)
        return actions, memory

    threads = num_cores() if jax.default_backend() == "cpu" else 1
    return BatchPlayer(name, params, choose, searcher.imagination.begin, _SEARCHED_AT_ONCE, threads)


def random_player() -> BatchPlayer:
    """A player for which each valid action is equally likely."""

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, keys: Array
    ) -> tuple[Array, PyTree]:
        del params, observations
        log_probs = distribution.log_probabilities(jnp.zeros(masks.shape), masks)
        return distribution.sample(log_probs, masks, _uniforms(keys)), carry

    return BatchPlayer("random", (), choose)


def function_player(policy: Callable[..., Any], params: PyTree) -> BatchPlayer:
    """A player of a user's function.

    Args:
        policy: from params, and observation, mask bool[A] and random key of one game, to its
            action.
        params: any tree of arrays.
    """

    def choose(
        params: PyTree, carry: PyTree, observations: PyTree, masks: Array, keys: Array
    ) -> tuple[Array, PyTree]:
        of_games = jax.vmap(policy, in_axes=(None, 0, 0, 0))
        masks |= ~jnp.any(masks, axis=1, keepdims=True)  # a function may rely on a valid action
        made = of_games(params, observations, masks, keys)
        if not isinstance(made, Array):
            got = type(made).__name__
            raise UserError(f"the policy must return the action of one game, int[], got a {got}")
        actions = jnp.asarray(made)
        if actions.ndim != 1 or not jnp.issubdtype(actions.dtype, jnp.integer):
            got = f"{actions.dtype}{list(actions.shape[1:])}"
            raise UserError(f"the policy must return the action of one game, int[], got {got}")
        return actions.astype(jnp.int32), carry

    return BatchPlayer(getattr(policy, "__name__", "policy"), params, choose)


def _uniforms(keys: Array) -> Array:
    return jax.vmap(jax.random.uniform)(keys)


class Seated(NamedTuple):
    """A player, and what it plays."""

    environment: str  # id
    env: Environment
    player: BatchPlayer


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
    return seat_of(policy, env, str(agent), agent.simulations, greedy=greedy)


def seat_of(
    policy: Policy, env: str, name: str, simulations: int | None, *, greedy: bool
) -> Seated:
    """The player of a network, or of a search with it; the others are as of `player_of`.

    Args:
        policy: the network.
        env: the environment that the user names.
        name: of the player.
        simulations: of a search before each action; None without.
        greedy: whether the network takes its most probable action.

    Raises:
        UserError: its params don't fit the environment or a search.
    """
    check_env_name(policy, env)
    if simulations is None:
        environment, network = policy.make(env)
        player = network_player(name, network, policy.params, greedy=greedy or policy.greedy)
        return Seated(policy.environment, environment, player)
    if greedy:
        raise UserError(f"{name}: a search goes without --greedy")
    searcher = Searcher.of(policy, simulations)
    environment = make_environment(policy.environment, policy.observation)
    return Seated(policy.environment, environment, search_player(name, searcher, policy.params))


def check_env_name(policy: Policy, env: str) -> None:
    """Raises `UserError` if the user names an environment of their own, and params play another."""
    if own_code(env) and environment_id(env) != policy.environment:
        raise UserError(f"{policy.path}: plays {policy.environment!r:.80}, not {env}")
