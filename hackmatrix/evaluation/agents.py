"""The agents that `hackmatrix evaluate` plays: built-in players, and networks from files."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.agents.policy import load_policy
from hackmatrix.environments.registry import make_environment
from hackmatrix.errors import UserError
from hackmatrix.evaluation.accounts import Account
from hackmatrix.evaluation.findings import find
from hackmatrix.evaluation.games import Games, Limits
from hackmatrix.evaluation.plain_games import Replay, ScriptedGame, replays, scripted_games
from hackmatrix.evaluation.players import (
    Player,
    exit_player,
    network_player,
    random_player,
    search_player,
)
from hackmatrix.evaluation.report import Report, report_on
from hackmatrix.interface.environment import Environment
from hackmatrix.interface.report import PlayedGames
from hackmatrix.rules.actions import NUM_ACTIONS
from hackmatrix.rules.rewards import UNIT
from hackmatrix.search.model import Searcher
from hackmatrix.version import ENVIRONMENT_ID

SCRIPTED = "scripted"
BUILT_IN = ("random", "exit", SCRIPTED)

_SEARCHED_AT_ONCE = 256  # games; with fewer a move costs more, with more the last ones take longer

Play = Callable[[Collection[int]], Report]  # plays without these actions


def agent_player(
    agent: str, env: str, limits: Limits, *, greedy: bool, search: int | None = None
) -> Play:
    """What plays an agent's games; networks are compiled once, whatever is forbidden.

    Args:
        agent: one of `BUILT_IN`, or the path of params or of a run with one agent.
        env: the environment of a built-in player.
        limits: which games.
        greedy: whether networks take their most probable action.
        search: simulations of a tree search before each action of a network; none without.

    Raises:
        UserError: there is no such file or environment, or they do not fit.
    """
    if search is not None and agent in BUILT_IN:
        raise UserError(f"--search goes with params, {agent} has no network")
    if agent == SCRIPTED:
        return lambda forbidden: _scripted(limits, forbidden)
    if agent in BUILT_IN:
        made = make_environment(env)
        return _compiled(made, random_player() if agent == "random" else exit_player(), limits)
    policy = load_policy(Path(agent))
    if search is not None:
        made = make_environment(policy.environment, policy.observation)
        searcher = Searcher.of(policy, search)
        player = search_player(agent, searcher, policy.params)
        return _compiled(made, player, limits, _SEARCHED_AT_ONCE)
    made, network = policy.make()
    return _compiled(made, network_player(agent, network, policy.params, greedy=greedy), limits)


def _compiled(env: Environment, player: Player, limits: Limits, places: int | None = None) -> Play:
    if getattr(env, "id", None) != ENVIRONMENT_ID:
        games = Games(env, player, limits, places=places)
        return lambda forbidden: report_on(env, games.play(player.params, forbidden))
    recorded = Games(env, player, limits, record=True, places=places)

    def play(forbidden: Collection[int]) -> Report:
        games, actions = recorded.play_recorded(player.params, forbidden)
        accounts = replays(
            [Replay(limits.seed, limits.first + i, each) for i, each in enumerate(actions)]
        )
        return report_on(env, games, find(accounts))

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
