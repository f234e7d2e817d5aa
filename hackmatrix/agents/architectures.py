"""Table of the networks by name, and their settings. Imports no JAX, so that `--help` is fast.

A new network is a module with a function `make(env, config) -> Network` and a row of this table.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from hackmatrix.errors import UserError


class Architecture(NamedTuple):
    """A kind of network: one row of the table."""

    module: str  # has the function `make(env, config)`, see `agents/network.py`
    recurrent: bool  # whether it keeps a carry; if so, it learns from whole sequences


MULTI_TASK = "multi_task"

ARCHITECTURES = {
    "mlp": Architecture("hackmatrix.agents.mlp", recurrent=False),
    "cells": Architecture("hackmatrix.agents.cells", recurrent=False),
    "gru": Architecture("hackmatrix.agents.gru", recurrent=True),
    MULTI_TASK: Architecture("hackmatrix.agents.multi_task", recurrent=False),
}


@dataclass(frozen=True)
class NetworkConfig:
    """Settings of a network: the fields of `TrainConfig` with the same names."""

    architecture: str = "mlp"
    hidden_dim: int = 256
    num_layers: int = 2
    activation: str = "relu"
    dtype: str = "float32"  # of the inputs of matrix products
    layer_norm: bool = False  # of dense layers; the network `cells` has it always

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The network's part of a run's settings; settings that are missing keep their defaults."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: settings[name] for name in names if name in settings})

    @classmethod
    def read(cls, path: Path, settings: Mapping[str, Any]) -> Self:
        """Like `of`, from a file of facts.

        Raises:
            UserError: a setting has the wrong type, or this version has no such network.
        """
        config = cls.of(settings)
        for field in dataclasses.fields(config):
            value, kind = getattr(config, field.name), type(field.default)
            if type(value) is not kind:
                raise UserError(f"{path}: {field.name} must be {kind.__name__}, got {value!r:.60}")
        if config.architecture not in ARCHITECTURES:
            raise UserError(
                f"{path}: is of the network {config.architecture!r}, which this version lacks"
            )
        return config
