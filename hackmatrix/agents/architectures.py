"""Table of the networks by name, and their settings. Imports no JAX, so that `--help` is fast.

A new network is a module with a function `make(env, config) -> Network` and a row of this table.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Architecture(NamedTuple):
    """A kind of network: one row of the table."""

    module: str  # has the function `make(env, config)`, see `agents/network.py`
    recurrent: bool  # whether it keeps a carry; if so, it learns from whole sequences


ARCHITECTURES = {
    "mlp": Architecture("hackmatrix.agents.mlp", recurrent=False),
}


@dataclass(frozen=True)
class NetworkConfig:
    """Settings of a network: the fields of `TrainConfig` with the same names."""

    architecture: str = "mlp"
    hidden_dim: int = 256
    num_layers: int = 2
    activation: str = "relu"
    dtype: str = "float32"  # of the inputs of matrix products

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "NetworkConfig":
        """The network's part of a run's settings; settings that are missing keep their defaults."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: settings[name] for name in names if name in settings})
