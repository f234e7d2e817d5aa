"""Table of the algorithms that train networks, by name. Imports no JAX, so that `--help` is fast.

A new algorithm is a class with the members of `learning/trainer/algorithm.py` and a row of this
table; or it is the user's own, whose name is `module:Class`. The table is here because an agent
plays as the algorithm that trained it means its network to be read.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hackmatrix.core.named_code import NamesOrCode, check_allowed, import_callable

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
NAMES = NamesOrCode(ALGORITHMS, "module:Class")


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
