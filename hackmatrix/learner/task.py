"""What stays the same in all of a training: who learns what, and how."""

from typing import NamedTuple

from hackmatrix.agents.network import Network
from hackmatrix.interface.environment import Environment
from hackmatrix.settings.config import TrainConfig


class Task(NamedTuple):
    """The environment, the network that learns it, and the settings."""

    env: Environment
    network: Network
    config: TrainConfig
    detect_anomaly: bool = False  # whether every step is searched for numbers that are not finite
