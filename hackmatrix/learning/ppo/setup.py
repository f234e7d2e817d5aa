"""The constants of a training: the environment, the network and the settings."""

from typing import NamedTuple

from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.ppo.algorithm import Algorithm, algorithm_of
from hackmatrix.learning.ppo.config import PPOConfig


class Task(NamedTuple):
    """The environment, the network that learns it, and the settings."""

    env: Environment
    network: Network
    config: PPOConfig
    detect_anomaly: bool = False  # whether to search for numbers that are not finite

    @property
    def algorithm(self) -> Algorithm:
        """What learns."""
        return algorithm_of(self.config.algorithm)
