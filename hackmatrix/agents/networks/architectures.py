"""The networks and the algorithms by name. Imports no JAX, so that `--help` is fast.

A new network is a module with a function `make(env, config) -> Network` and a row of its table, a
new algorithm a class with the members of `learning/trainer/algorithm.py` and a row of its own; or
it is the user's, whose name is `module:function` or `module:Class`. Algorithms stand here as an
agent plays as the one that trained it means its network to be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.named_code import NamesOrCode, check_allowed, import_callable
from hackmatrix.core.options import check, option, options_of

PPO = "ppo"  # the default


class AlgorithmRow(NamedTuple):
    """An algorithm's class, and what is to be known of it before JAX is imported."""

    code: str  # `module:Class`
    greedy: bool = False  # whether evaluations take the most probable action, or else sample one
    searches: bool = False  # whether it plays made-up games, of the environment's `imagination`
    settings: Mapping[str, Any] = {}  # those of a new run that are not the general defaults


ALGORITHMS = {
    PPO: AlgorithmRow("hackmatrix.learning.algorithms.ppo:PPO"),
    "pqn": AlgorithmRow(
        "hackmatrix.learning.algorithms.pqn:PQN",
        greedy=True,
        settings={"layer_norm": True, "lr_schedule": "linear"},
    ),
    "expert_iteration": AlgorithmRow(
        "hackmatrix.learning.algorithms.expert_iteration:ExpertIteration",
        searches=True,
        settings={"normalize_rewards": False, "ent_coef": 0.01},
    ),
}
ALGORITHM_NAMES = NamesOrCode(ALGORITHMS, "module:Class")


def import_algorithm(name: str) -> Any:
    """The class of an algorithm.

    Raises:
        UserError: it is the user's own, and only a file named it, it is not there, or its module
            fails.
    """
    if name in ALGORITHMS:
        return import_callable(ALGORITHMS[name].code)
    from hackmatrix.environments.user_code import convert_errors

    check_allowed(name, "the algorithm is", "--algorithm")
    with convert_errors(f"algorithm {name}"):
        return import_callable(name)


def find_algorithm(name: str) -> AlgorithmRow:
    """The row of an algorithm; of one of the user's own, its class says the same.

    Raises:
        UserError: see `import_algorithm`.
    """
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    own = import_algorithm(name)
    members = {field: getattr(own, field.upper(), None) for field in AlgorithmRow._fields[1:]}
    return AlgorithmRow(name, **{field: x for field, x in members.items() if x is not None})


def plays_greedily(settings: Mapping[str, Any] | None) -> bool:
    """Whether the agents of a run with these settings are evaluated by their best actions."""
    settings = settings or {}
    row = ALGORITHMS.get(str(settings.get("algorithm", PPO)))
    return bool(settings.get("greedy")) if row is None else row.greedy


class Architecture(NamedTuple):
    """A kind of network: one row of the table."""

    module: str  # has the function `make(env, config)`, see `agents/networks/network.py`
    recurrent: bool  # whether it keeps a carry; if so, it learns from whole sequences


MULTI_TASK = "multi_task"

ARCHITECTURES = {
    "mlp": Architecture("hackmatrix.agents.networks.mlp", recurrent=False),
    "separate_critic": Architecture("hackmatrix.agents.networks.separate_critic", recurrent=False),
    "cells": Architecture("hackmatrix.agents.networks.cells", recurrent=False),
    "player_centred": Architecture("hackmatrix.agents.networks.player_centred", recurrent=False),
    "gru": Architecture("hackmatrix.agents.networks.gru", recurrent=True),
    MULTI_TASK: Architecture("hackmatrix.agents.networks.multi_task", recurrent=False),
}


OWN_NETWORK = "network, if it is your own (module:function)"
_FLAG = "--architecture"
_ARCHITECTURE_NAMES = NamesOrCode(ARCHITECTURES, "module:function")


@dataclass(frozen=True)
class NetworkConfig:
    """Settings of a network: those of a run's that decide what it computes."""

    SECTION: ClassVar = "model"

    architecture: str = option(
        "mlp",
        "network; module:function for one of your own, see docs/networks.md",
        choices=_ARCHITECTURE_NAMES,
        names_code=True,
        common=True,
    )
    hidden_dim: int = option(
        256, "width of the network's layers", at_least=1, at_most=65_536, common=True
    )
    num_layers: int = option(
        2, "layers of the network's trunk", at_least=1, at_most=100, common=True
    )
    activation: Literal["relu", "tanh"] = option("relu", "activation function between the layers")
    dtype: Literal["float32", "bfloat16"] = option(
        "float32",
        "precision of the network's matrix products; params and loss stay float32",
    )
    layer_norm: bool = option(  # the network `cells` has it always
        False, "normalize the sums of each dense layer before its activation"
    )
    symmetric: bool = option(
        False,
        "mlp: mirrored games get mirrored answers, by weights that are shared; for environments "
        "that say how they are mirrored, as HackMatrix with --observation tactical",
    )
    value: Literal["return", "chance"] = option(
        "return",
        "what the network's value is: the expected return, or the chance of an outcome that pays "
        "1, learned by cross-entropy (--reward win)",
    )

    def __post_init__(self) -> None:
        check(self)
        if self.symmetric and self.architecture != "mlp":
            raise UserError(f"--symmetric goes with {_FLAG} mlp, not with {self.architecture}")

    @property
    def is_own(self) -> bool:
        """Whether the network is the user's own code."""
        return self.architecture not in ARCHITECTURES

    @property
    def recurrent(self) -> bool:
        """Whether the network keeps a carry; one of the user's own is imported to know it."""
        if self.is_own:
            return bool(getattr(self.own_code(), "recurrent", False))
        return ARCHITECTURES[self.architecture].recurrent

    def own_code(self) -> Any:
        """The user's function or class that makes the network.

        Raises:
            UserError: only a file named it, it is not there, or its module fails.
        """
        from hackmatrix.environments.user_code import convert_errors

        self.check_code("the network is")
        with convert_errors(f"network {self.architecture}"):
            return import_callable(self.architecture)

    @property
    def code_flags(self) -> tuple[str, ...]:
        """The flags that name the network, if it is the user's own; else none."""
        return (_FLAG, self.architecture) if self.is_own else ()

    def check_code(self, what: str) -> None:
        """Raises `UserError`, which begins with `what`, if it is code that no user named."""
        if self.is_own:
            check_allowed(self.architecture, what, _FLAG)

    @classmethod
    def read(cls, path: Path, settings: Mapping[str, Any]) -> Self:
        """The network's part of a run's settings in a file of facts; others keep their defaults.

        Raises:
            UserError: a setting has the wrong type or is out of range, or this version has no such
                network.
        """
        values = {name: settings[name] for name in options_of(cls) if name in settings}
        for spec in options_of(cls).values():
            value = values.get(spec.name, spec.default)
            if type(value) is not spec.value_type:
                wanted = spec.value_type.__name__
                raise UserError(f"{path}: {spec.name} must be {wanted}, got {value!r:.60}")
            if spec.name == "architecture" and value not in _ARCHITECTURE_NAMES:
                raise UserError(
                    f"{path}: is of the network {value!r:.60}, which this version lacks"
                )
            try:
                spec.check(value)
            except ValueError as error:
                raise UserError(f"{path}: {spec.name} {error}") from None
        config = cls(**values)
        config.check_code(f"{path}: its network is")
        return config
