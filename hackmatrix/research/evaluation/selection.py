"""Evaluates params during training, to choose the best ones."""

from collections.abc import Callable

from hackmatrix.agents.networks.algorithms import find_algorithm
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.learning.run.loop import Evaluate
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.evaluation.games import SELECTION, EvaluationGames
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Report


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
