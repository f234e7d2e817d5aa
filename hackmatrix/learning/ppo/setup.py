"""The constants of a training: the environment, the network and the settings."""

from typing import Any, NamedTuple

from hackmatrix.agents.networks.algorithms import ALGORITHMS
from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.environments.interface.imagination import Imagination
from hackmatrix.learning.ppo.algorithm import Algorithm, algorithm_of
from hackmatrix.learning.ppo.config import PPOConfig


class Task(NamedTuple):
    """The environment, the network that learns it, and the settings."""

    env: Environment
    network: Network
    config: PPOConfig
    detect_anomaly: bool = False  # whether to search for numbers that are not finite
    few_kernels: bool = False  # whether starting a kernel costs more than its work: on GPUs

    @property
    def algorithm(self) -> Algorithm:
        """What learns."""
        return algorithm_of(self.config.algorithm)

    @property
    def searches(self) -> bool:
        """Whether the algorithm searches before each action."""
        return ALGORITHMS[self.config.algorithm].searches

    @property
    def imagination(self) -> Imagination:
        """The made-up games in which an algorithm searches."""
        env: Any = self.env  # that has it: see `trainer.py`
        made: Imagination = env.imagination()
        return made
