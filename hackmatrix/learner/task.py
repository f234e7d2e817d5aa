"""What stays constant during training: the environment, the network and the settings."""

from typing import NamedTuple

from hackmatrix.agents.network import Network
from hackmatrix.interface.environment import Environment
from hackmatrix.settings.config import TrainConfig


class Task(NamedTuple):
    """The environment, the network that learns it, and the settings."""

    env: Environment
    network: Network
    config: TrainConfig
    detect_anomaly: bool = False  # whether to search for numbers that are not finite
