"""Trains several agents in one program, each with its own seed (`--num-seeds`).

Each agent is the one that a run with its seed alone would make: agents share nothing. The arrays of
K agents have a leading axis K; those of a single agent have no such axis.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

Tree = Any
OverAgents = Callable[[Callable[[Tree], Tree]], Callable[[Tree], Tree]]


def one_by_one(rule: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """Maps a function of one agent over many by `lax.map`: runs one agent after another."""
    return lambda agents: jax.lax.map(rule, agents)


def side_by_side(rule: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """Maps a function of one agent over many by `vmap`: all in one batch."""
    return jax.vmap(rule)


def fastest(platform: str) -> OverAgents:
    """`one_by_one` on CPU, where batches of small products are slow; see docs/performance.md."""
    return one_by_one if platform == "cpu" else side_by_side


def split(tree: Tree, count: int) -> list[Tree]:
    """Splits the tree of `count` agents (NumPy arrays) into one tree for each agent."""
    if count == 1:
        return [tree]
    return [jax.tree.map(lambda x, k=k: x[k], tree) for k in range(count)]


def are_finite(tree: Tree) -> bool:
    """Whether all numbers of a tree of arrays are finite."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))
