"""Many agents in one program, each with a seed of its own (`--num-seeds`).

An agent is what its seed alone would make: nothing is shared with the others. Trees of K agents
have arrays with a leading axis K; those of a single agent have no such axis.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

Tree = Any
OverAgents = Callable[[Callable[[Tree], Tree]], Callable[[Tree], Tree]]


def one_by_one(rule: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """A rule of one agent for many: the very program of a single one, run for each."""
    return lambda agents: jax.lax.map(rule, agents)


def side_by_side(rule: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    """A rule of one agent for many, all at once."""
    return jax.vmap(rule)


def fastest(platform: str) -> OverAgents:
    """`one_by_one` on CPU, where batches of small products are slow; see docs/performance.md."""
    return one_by_one if platform == "cpu" else side_by_side


def split(tree: Tree, count: int) -> list[Tree]:
    """The trees of `count` agents, from arrays of NumPy."""
    if count == 1:
        return [tree]
    return [jax.tree.map(lambda x, k=k: x[k], tree) for k in range(count)]


def are_finite(tree: Tree) -> bool:
    """Whether all numbers of a tree of NumPy arrays are."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))
