"""Evaluates params during training, to choose the best ones."""

from hackmatrix.agents.network import Network
from hackmatrix.evaluation.games import SELECTION, Games, Limits
from hackmatrix.evaluation.players import network_player
from hackmatrix.evaluation.report import report_on
from hackmatrix.interface.environment import Environment
from hackmatrix.settings.config import TrainConfig
from hackmatrix.training.loop import Evaluate


def make_evaluate(env: Environment, network: Network, config: TrainConfig) -> Evaluate:
    """The function that evaluates params, for `hackmatrix.training.loop.train`.

    It plays `config.eval_episodes` games with sampled actions, always the same ones: neither games
    of the training nor those of `hackmatrix evaluate`.
    """
    player = network_player("", network, None, greedy=False)
    games = Games(env, player, Limits(config.eval_episodes, config.seed, first=SELECTION))
    return lambda params: report_on(env, games.play(params)).means()
