"""The networks by name, and their settings. Imports no JAX, so that `--help` is quick.

A new network is a module with a function `make(env, config) -> Network` and a row of this table.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Architecture(NamedTuple):
    """A kind of network."""

    module: str  # has the function `make(env, config)`, see `agents/network.py`
    recurrent: bool  # whether it remembers earlier steps; it then learns from whole sequences


ARCHITECTURES = {
    "mlp": Architecture("hackmatrix.agents.mlp", recurrent=False),
}


@dataclass(frozen=True)
class NetworkConfig:
    """The settings of a network: those of `TrainConfig` with the same names."""

    architecture: str = "mlp"
    hidden_dim: int = 256
    num_layers: int = 2
    activation: str = "relu"
    dtype: str = "float32"  # of the factors of its products

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "NetworkConfig":
        """The part of a run's settings that concerns the network."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: settings[name] for name in names if name in settings})
