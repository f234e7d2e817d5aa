"""Steps those games of a batch that are of one task, so that no other is computed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from hackmatrix.environments.interface.environment import PyTree

Array = jax.Array
Stepping = Callable[[Array, PyTree, Array], Any]  # key, state, action -> results, state the second


def stepping_some(step: Stepping, parts: int) -> Callable[[Array, Array, PyTree, Array], Any]:
    """Makes `step` take one more argument, a bool: whether this game takes its step.

    If not, its state stays, and its other results are zeros or meaningless. `jax.vmap` of it
    gathers the games that take it, one of `parts` equal shares of the batch at a time, until all of
    them have: once, if as many games are of each task.
    """

    @custom_vmap
    def step_some(takes: Array, key: Array, state: PyTree, action: Array) -> Any:
        observation, after, *others = step(key, state, action)
        after = jax.tree.map(lambda new, old: jnp.where(takes, new, old), after, state)
        return observation, after, *others

    @step_some.def_vmap
    def step_batch(size: int, batched: Any, *arguments: Any) -> Any:
        takes, *games = jax.tree.map(
            lambda x, is_batched: x if is_batched else jnp.broadcast_to(x, (size, *x.shape)),
            arguments,
            tuple(batched),
        )
        results = _step_games(jax.vmap(step), takes, tuple(games), share=-(-size // parts))
        return results, jax.tree.map(lambda _: True, results)

    return step_some


def _step_games(step: Any, takes: Array, games: tuple[Any, ...], share: int) -> Any:
    """The results of the games [N] that `takes` names, `share` of them at a time."""
    observation, _, *others = jax.eval_shape(step, *games)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (observation, others))
    start = takes, (zeros[0], games[1], *zeros[1])

    def go_on(progress: Any) -> Any:
        left, results = progress
        (chosen,) = jnp.nonzero(left, size=share, fill_value=len(left))  # beyond the last: dropped
        some = jax.tree.map(lambda x: x[jnp.minimum(chosen, len(left) - 1)], games)
        results = jax.tree.map(
            lambda all_, new: all_.at[chosen].set(new, mode="drop"), results, tuple(step(*some))
        )
        return left.at[chosen].set(False, mode="drop"), results

    return jax.lax.while_loop(lambda progress: jnp.any(progress[0]), go_on, start)[1]
