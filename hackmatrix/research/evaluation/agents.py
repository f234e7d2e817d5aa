"""Games of an agent by its name, and the report on them; JAX is loaded for those that need it."""

from collections.abc import Collection

from hackmatrix.agents.roster.names import AgentName
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import are_installed, install_command, need
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.registry import environment_id
from hackmatrix.game import native
from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.plain_games import PlainGame, play_games
from hackmatrix.research.evaluation.report import Play, Report

SLOWER = f"JAX is not installed, so NumPy plays, slower: {install_command('train')}"


def agent_player(
    agent: AgentName, env: str, limits: Limits, *, greedy: bool, forbids: bool = False
) -> Play:
    """A function that plays an agent's games; networks are compiled once, whatever is forbidden.

    Without JAX, networks that have a forward pass there play on NumPy.

    Args:
        agent: its name.
        env: the environment that the user names.
        limits: which games.
        greedy: whether networks take their most probable action.
        forbids: whether programs will be forbidden, which only HackMatrix has.

    Raises:
        UserError: its params are damaged, or they do not fit.
    """
    if agent.plays_by_rule(env):
        return _by_rule(agent, limits)
    if forbids and agent.simulations is not None:
        raise UserError(f"{agent}: a search goes without --forbid")
    if plays_on_numpy(agent, env):
        from hackmatrix.research.evaluation.lockstep_games import numpy_player

        assert agent.params is not None
        return numpy_player(agent.params, limits, greedy=greedy)
    need("jax", "flax")
    from hackmatrix.research.evaluation.jax_agents import jax_player

    return jax_player(agent, env, limits, greedy=greedy, forbids=forbids)


def plays_on_numpy(agent: AgentName, env: str) -> bool:
    """Whether an agent is a network that plays HackMatrix on NumPy, as JAX is not installed."""
    searches, ours = agent.simulations is not None, environment_id(env) == ENVIRONMENT_ID
    return agent.params is not None and ours and not searches and not are_installed("jax", "flax")


def _by_rule(agent: AgentName, limits: Limits) -> Play:
    def play(forbidden: Collection[int] = (), first: int | None = None) -> Report:
        games = limits if first is None else limits._replace(first=first)
        return report_of_accounts(_accounts(agent, games, frozenset(forbidden)), games)

    return play


def _accounts(agent: AgentName, games: Limits, forbidden: frozenset[int]) -> list[Account]:
    if native.available and agent.name in ("scripted", "random"):
        from hackmatrix.research.evaluation.native_built_in import (
            random_accounts,
            scripted_accounts,
        )

        play = scripted_accounts if agent.name == "scripted" else random_accounts
        return play(games, forbidden)
    numbers = range(games.first, games.first + games.episodes)
    return play_games(
        [PlainGame(agent.name, games.seed, n, games.max_steps, forbidden) for n in numbers]
    )
