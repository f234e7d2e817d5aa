"""Table of the networks by name, and their settings. Imports no JAX, so that `--help` is fast.

A new network is a module with a function `make(env, config) -> Network` and a row of this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option, options_of


class Architecture(NamedTuple):
    """A kind of network: one row of the table."""

    module: str  # has the function `make(env, config)`, see `agents/networks/network.py`
    recurrent: bool  # whether it keeps a carry; if so, it learns from whole sequences


MULTI_TASK = "multi_task"

ARCHITECTURES = {
    "mlp": Architecture("hackmatrix.agents.networks.mlp", recurrent=False),
    "cells": Architecture("hackmatrix.agents.networks.cells", recurrent=False),
    "gru": Architecture("hackmatrix.agents.networks.gru", recurrent=True),
    MULTI_TASK: Architecture("hackmatrix.agents.networks.multi_task", recurrent=False),
}


@dataclass(frozen=True)
class NetworkConfig:
    """Settings of a network: those of a run's that decide what it computes."""

    architecture: str = option("mlp", "network, see docs/networks.md", choices=ARCHITECTURES)
    hidden_dim: int = option(256, "width of the network's layers", at_least=1, at_most=65_536)
    num_layers: int = option(2, "layers of the network's trunk", at_least=1, at_most=100)
    activation: Literal["relu", "tanh"] = option("relu", "activation function between the layers")
    dtype: Literal["float32", "bfloat16"] = option(
        "float32",
        "precision of the network's matrix products; params and loss stay float32",
    )
    layer_norm: bool = option(  # the network `cells` has it always
        False, "normalize the sums of each dense layer before its activation"
    )
    value: Literal["return", "chance"] = option(
        "return",
        "what the network's value is: the expected return, or the chance of an outcome that pays "
        "1, learned by cross-entropy (--reward win)",
    )

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def read(cls, path: Path, settings: Mapping[str, Any]) -> Self:
        """The network's part of a run's settings in a file of facts; others keep their defaults.

        Raises:
            UserError: a setting has the wrong type or is out of range, or this version has no such
                network.
        """
        found = {name: settings[name] for name in options_of(cls) if name in settings}
        for each in options_of(cls).values():
            value = found.get(each.name, each.default)
            if type(value) is not each.kind:
                wanted = each.kind.__name__
                raise UserError(f"{path}: {each.name} must be {wanted}, got {value!r:.60}")
            if each.name == "architecture" and value not in ARCHITECTURES:
                raise UserError(
                    f"{path}: is of the network {value!r:.60}, which this version lacks"
                )
            try:
                each.check(value)
            except ValueError as error:
                raise UserError(f"{path}: {each.name} {error}") from None
        return cls(**found)
