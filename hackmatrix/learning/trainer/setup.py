"""The constants of a training: the environment, the network and the settings."""

from typing import Any, NamedTuple

from hackmatrix.agents.networks.algorithms import find_algorithm
from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.environments.interface.imagination import Imagination
from hackmatrix.learning.trainer.config import AlgorithmConfig


class Setup(NamedTuple):
    """The environment, the network that learns it, and the settings."""

    env: Environment
    network: Network
    config: AlgorithmConfig
    detect_anomaly: bool = False  # whether to search for numbers that are not finite
    few_kernels: bool = False  # whether starting a kernel costs more than its work: on GPUs

    @property
    def searches(self) -> bool:
        """Whether the algorithm searches before each action."""
        return find_algorithm(self.config.algorithm).searches

    @property
    def imagination(self) -> Imagination:
        """The made-up games in which an algorithm searches."""
        env: Any = self.env  # that has it: see `trainer.py`
        games: Imagination = env.imagination()
        return games
