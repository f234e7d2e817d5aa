"""Table of the algorithms that train networks, by name. Imports no JAX, so that `--help` is fast.

A new algorithm is a module with the members of `hackmatrix/learning/ppo/algorithm.py` and a row of
this table. The table is here because an agent plays as the algorithm that trained it means its
network to be read.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

PPO = "ppo"  # the default


class Row(NamedTuple):
    """An algorithm, whose module has the members of `learning/ppo/algorithm.py`."""

    module: str
    greedy: bool = False  # whether evaluations take the most probable action, or else sample one
    searches: bool = False  # whether it plays made-up games, of the environment's `imagination`
    settings: Mapping[str, Any] = {}  # those of a new run that are not the general defaults


ALGORITHMS = {
    PPO: Row("hackmatrix.learning.ppo.update"),
    "pqn": Row(
        "hackmatrix.learning.ppo.pqn",
        greedy=True,
        settings={"layer_norm": True, "lr_schedule": "linear"},
    ),
    "expert_iteration": Row(
        "hackmatrix.learning.ppo.expert_iteration",
        searches=True,
        settings={"normalize_rewards": False, "ent_coef": 0.01},
    ),
}


def plays_greedily(settings: Mapping[str, Any] | None) -> bool:
    """Whether the agents of a run with these settings are evaluated by their best actions."""
    row = ALGORITHMS.get(str((settings or {}).get("algorithm", PPO)))
    return row is not None and row.greedy
