"""Games of agents in JAX: networks, searches, functions, random play; also during training."""

from collections.abc import Callable, Collection
from typing import Any

from hackmatrix.agents.networks.architectures import find_algorithm
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.roster.batch_players import (
    Seated,
    function_player,
    network_player,
    player_of,
    seat_of,
)
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members
from hackmatrix.environments.registry import environment_id, make
from hackmatrix.learning.run.loop import Evaluate
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.evaluation.games import SELECTION, EvaluationGames
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.plain_games import PlayedReplay, replays
from hackmatrix.research.evaluation.report import Play, Report, report_on


@with_jax_defaults
def jax_player(agent: AgentName, env: str, limits: Limits, *, greedy: bool, forbids: bool) -> Play:
    """A function that plays the games of an agent without some actions.

    Args:
        agent: its name.
        env: the environment that the user names.
        limits: which games.
        greedy: whether a network takes its most probable action.
        forbids: whether programs will be forbidden, which only HackMatrix has.

    Raises:
        UserError: its params are damaged, or they do not fit.
    """
    seated = player_of(agent, env, greedy=greedy)
    if forbids and optional_members(seated.env).id != ENVIRONMENT_ID:
        raise UserError(
            f"--forbid goes with HackMatrix, whose programs it names; {agent} plays "
            f"{seated.environment}"
        )
    return _play(seated, limits)


@with_jax_defaults
def network_report(
    policy: Policy, env: str, limits: Limits, *, greedy: bool, search: int | None
) -> Report:
    """The report on the games of a loaded network; the arguments are those of its name."""
    enable_compilation_cache()
    return _play(seat_of(policy, env, str(policy.path), search, greedy=greedy), limits)(())


@with_jax_defaults
def jax_report(
    policy: Callable[..., Any], params: Any, observation: str, env: str, limits: Limits
) -> Report:
    """The report on the games of a function.

    Args:
        policy: from params, and observation, mask bool[A] and key of one game, to its action.
        params: any tree of arrays.
        observation: what it is shown of HackMatrix; others have one observation.
        env: the environment's name.
        limits: which games.

    Raises:
        UserError: there is no such environment or observation, or it doesn't return actions.
    """
    enable_compilation_cache()
    name = environment_id(env)
    options = {"observation": observation} if name == ENVIRONMENT_ID else {}
    return _play(Seated(name, make(env, **options), function_player(policy, params)), limits)(())


def _play(seated: Seated, limits: Limits) -> Play:
    _, env, player = seated
    is_ours = optional_members(env).id == ENVIRONMENT_ID
    games = EvaluationGames(env, player, limits, record=is_ours)

    @with_jax_defaults
    def play(forbidden: Collection[int] = (), first: int | None = None) -> Report:
        which = limits if first is None else limits._replace(first=first)
        if not is_ours:
            found = games.play(player.params, forbidden, which.first)
            return report_on(report_of(env, found), found, which)
        results = games.play_recorded(player.params, forbidden, which.first)
        actions = results.actions_of_each()
        accounts = replays(
            [PlayedReplay(which.seed, which.first + i, each) for i, each in enumerate(actions)]
        )
        return report_on(report_of(env, results.games), results.games, which, accounts)

    return play


def make_evaluate(env: Environment, network: Network, config: TrainConfig) -> Evaluate:
    """The function that evaluates params, for `hackmatrix.learning.run.loop.train`.

    It plays `--eval-episodes` games, always the same ones, with sampled actions, or with the most
    probable ones where the algorithm means it so: neither games of the training nor those of
    `hackmatrix evaluate`.
    """
    report = make_report(env, network, config)
    return lambda params: report(params).means()


def make_report(
    env: Environment, network: Network, config: TrainConfig
) -> Callable[[PyTree], Report]:
    """The function that plays the games of `make_evaluate` with some params and reports on them."""
    greedy = find_algorithm(config.learning.algorithm).greedy
    player = network_player("", network, None, greedy=greedy)
    games = EvaluationGames(
        env, player, Limits(config.report.eval_episodes, config.run.seed, first=SELECTION)
    )
    return games.report
