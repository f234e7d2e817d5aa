"""The agents that `hackmatrix evaluate` plays: built-in players, and networks from files."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.batch_players import (
    Player,
    exit_player,
    network_player,
    random_player,
    search_player,
)
from hackmatrix.agents.search.model import Searcher
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.interface.environment import Environment, optional_members
from hackmatrix.environments.interface.report import PlayedGames
from hackmatrix.environments.registry import environment_id, make_environment, own_code
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.findings import find
from hackmatrix.research.evaluation.games import PLACES, Games, Limits
from hackmatrix.research.evaluation.plain_games import Replay, ScriptedGame, replays, scripted_games
from hackmatrix.research.evaluation.report import Report, report_on

SCRIPTED = "scripted"
BUILT_IN = ("random", "exit", SCRIPTED)

_SEARCHED_AT_ONCE = 256  # games; with fewer a move costs more, with more the last ones take longer

Play = Callable[[Collection[int]], Report]  # plays without these actions


def agent_player(
    agent: str,
    env: str,
    limits: Limits,
    *,
    greedy: bool,
    search: int | None = None,
    forbids: bool = False,
) -> Play:
    """What plays an agent's games; networks are compiled once, whatever is forbidden.

    Args:
        agent: one of `BUILT_IN`, or the path of params or of a run with one agent.
        env: the environment of a built-in player, or that of params if it is one of the user's own.
        limits: which games.
        greedy: whether networks take their most probable action.
        search: simulations of a tree search before each action of a network; none without.
        forbids: whether programs will be forbidden, which only HackMatrix has.

    Raises:
        UserError: there is no such file or environment, or they do not fit.
    """
    if agent == SCRIPTED:
        check_search(agent, search)
        return lambda forbidden: _scripted(limits, forbidden)
    compiled = compiled_agent(agent, env, greedy=greedy, search=search)
    if forbids and not _is_hackmatrix(compiled.env):
        raise UserError(
            f"--forbid goes with HackMatrix, whose programs it names; {agent} plays "
            f"{compiled.environment}"
        )
    return _compiled(compiled, limits)


class CompiledAgent(NamedTuple):
    """An agent that plays in the JAX engine, and what it plays."""

    environment: str  # id
    env: Environment
    player: Player
    places: int  # games at once that suit it


def compiled_agent(agent: str, env: str, *, greedy: bool, search: int | None) -> CompiledAgent:
    """The player of an agent, other than the scripted one; see `agent_player`.

    Raises:
        UserError: there is no such file or environment, or they do not fit.
    """
    check_search(agent, search)
    if agent in BUILT_IN:
        player = random_player() if agent == "random" else exit_player()
        return CompiledAgent(environment_id(env), make_environment(env), player, PLACES)
    policy = load_policy(Path(agent))
    check_environment_of(policy, env)
    if search is not None:
        searcher = Searcher.of(policy, search)
        made = make_environment(policy.environment, policy.observation)
        player = search_player(agent, searcher, policy.params)
        return CompiledAgent(policy.environment, made, player, _SEARCHED_AT_ONCE)
    made, network = policy.make(env)
    player = network_player(agent, network, policy.params, greedy=greedy)
    return CompiledAgent(policy.environment, made, player, PLACES)


def check_environment_of(policy: Policy, env: str) -> None:
    """Raises `UserError` if the user names an environment of their own, and params play another."""
    if own_code(env) and environment_id(env) != policy.environment:
        raise UserError(f"{policy.path}: plays {policy.environment!r:.80}, not {env}")


def check_search(agent: str, search: int | None) -> None:
    """Raises `UserError` if a built-in player is to search."""
    if search is not None and agent in BUILT_IN:
        raise UserError(f"--search goes with params, {agent} has no network")


def _is_hackmatrix(env: Environment) -> bool:
    return optional_members(env).id == ENVIRONMENT_ID


def _compiled(agent: CompiledAgent, limits: Limits) -> Play:
    _, env, player, places = agent
    if not _is_hackmatrix(env):
        games = Games(env, player, limits, places=places)
        return lambda forbidden: report_on(env, games.play(player.params, forbidden))
    recorded = Games(env, player, limits, record=True, places=places)

    def play(forbidden: Collection[int]) -> Report:
        played = recorded.play_recorded(player.params, forbidden)
        actions = played.actions_of_each()
        accounts = replays(
            [Replay(limits.seed, limits.first + i, each) for i, each in enumerate(actions)]
        )
        return report_on(env, played.games, find(accounts))

    return play


def _scripted(limits: Limits, forbidden: Collection[int]) -> Report:
    numbers = range(limits.first, limits.first + limits.episodes)
    masked = frozenset(forbidden)
    accounts = scripted_games(
        [ScriptedGame(limits.seed, number, limits.max_steps, masked) for number in numbers]
    )
    return report_on(make_environment(ENVIRONMENT_ID), _as_played(accounts), find(accounts))


def _as_played(accounts: Sequence[Account]) -> PlayedGames:
    """The games as the JAX engine would return them, without final observations."""

    def array(value: Callable[[Account], Any], dtype: Any) -> Any:
        return np.array([value(account) for account in accounts], dtype)

    taken = [
        np.bincount(np.frombuffer(a.actions, np.uint8), minlength=NUM_ACTIONS) for a in accounts
    ]
    return PlayedGames(
        returns=array(lambda account: account.units * UNIT, np.float32),
        lengths=array(lambda account: len(account.actions), np.int32),
        actions=np.array(taken, np.int32),
        terminated=array(lambda account: account.ending is not None, bool),
        info={
            "stage": array(lambda account: account.stages[-1].stage, np.int32),
            "score": array(lambda account: account.score, np.int32),
            "programs_owned": array(lambda account: account.programs, np.int32),
            "won": array(lambda account: account.won, bool),
        },
        final_observation=None,
    )
