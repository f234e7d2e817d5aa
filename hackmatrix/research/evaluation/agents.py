"""Games of an agent by its name, and the report on them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from hackmatrix.agents.roster.batch_players import Seated, player_of
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.interface.environment import Environment, optional_members
from hackmatrix.environments.interface.report import PlayedGames
from hackmatrix.environments.registry import make_environment
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.findings import find
from hackmatrix.research.evaluation.games import Games, Limits
from hackmatrix.research.evaluation.plain_games import PlainGame, Replay, played, replays
from hackmatrix.research.evaluation.report import Report, report_on

Play = Callable[[Collection[int]], Report]  # plays without these actions


def agent_player(
    agent: AgentName, env: str, limits: Limits, *, greedy: bool, forbids: bool = False
) -> Play:
    """A function that plays an agent's games; networks are compiled once, whatever is forbidden.

    Args:
        agent: its name.
        env: the environment that the user names.
        limits: which games.
        greedy: whether networks take their most probable action.
        forbids: whether programs will be forbidden, which only HackMatrix has.

    Raises:
        UserError: its params are damaged, or they do not fit.
    """
    if agent.plays_by_rule:
        return lambda forbidden: _in_python(agent, limits, forbidden)
    if forbids and agent.simulations is not None:
        raise UserError(f"{agent}: a search goes without --forbid")
    seated = player_of(agent, env, greedy=greedy)
    if forbids and not _is_hackmatrix(seated.env):
        raise UserError(
            f"--forbid goes with HackMatrix, whose programs it names; {agent} plays "
            f"{seated.environment}"
        )
    return _in_jax(seated, limits)


def _is_hackmatrix(env: Environment) -> bool:
    return optional_members(env).id == ENVIRONMENT_ID


def _in_jax(seated: Seated, limits: Limits) -> Play:
    _, env, player = seated
    if not _is_hackmatrix(env):
        games = Games(env, player, limits)
        return lambda forbidden: report_on(env, games.play(player.params, forbidden))
    recorded = Games(env, player, limits, record=True)

    def play(forbidden: Collection[int]) -> Report:
        results = recorded.play_recorded(player.params, forbidden)
        actions = results.actions_of_each()
        accounts = replays(
            [Replay(limits.seed, limits.first + i, each) for i, each in enumerate(actions)]
        )
        return report_on(env, results.games, find(accounts))

    return play


def _in_python(agent: AgentName, limits: Limits, forbidden: Collection[int]) -> Report:
    numbers = range(limits.first, limits.first + limits.episodes)
    masked = frozenset(forbidden)
    accounts = played(
        [PlainGame(agent.name, limits.seed, n, limits.max_steps, masked) for n in numbers]
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
