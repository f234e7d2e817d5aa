"""Games of agents that play in JAX: networks, searches, and random play of any environment."""

from collections.abc import Callable, Collection

from hackmatrix.agents.roster.batch_players import player_of
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.environment import optional_members
from hackmatrix.research.evaluation.findings import find
from hackmatrix.research.evaluation.games import Games
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.plain_games import Replay, replays
from hackmatrix.research.evaluation.report import Report, report_on


def jax_player(
    agent: AgentName, env: str, limits: Limits, *, greedy: bool, forbids: bool
) -> Callable[[Collection[int]], Report]:
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
    environment, made, player = player_of(agent, env, greedy=greedy)
    if optional_members(made).id != ENVIRONMENT_ID:
        if forbids:
            raise UserError(
                f"--forbid goes with HackMatrix, whose programs it names; {agent} plays "
                f"{environment}"
            )
        games = Games(made, player, limits)
        return lambda forbidden: games.report(player.params, forbidden)
    recorded = Games(made, player, limits, record=True)

    def play(forbidden: Collection[int]) -> Report:
        results = recorded.play_recorded(player.params, forbidden)
        actions = results.actions_of_each()
        accounts = replays(
            [Replay(limits.seed, limits.first + i, each) for i, each in enumerate(actions)]
        )
        return report_on(report_of(made, results.games), results.games, find(accounts))

    return play
