"""Branches and loops controlled by one scalar for the whole batch.

Every rule runs under `jax.vmap(..., axis_name=GAMES)` (see `batch.py`). A condition or trip count
that is reduced over that axis is one scalar for all games, so a branch stays a branch and a loop
stays a plain loop, without a select over everything it carries. Both are also barriers: XLA does
not fuse operations across them.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

GAMES = "games"
_Tree = TypeVar("_Tree")


def select(condition: jax.Array, yes: _Tree, no: _Tree) -> _Tree:
    """Selects one of two trees of one game by a scalar condition."""
    return jax.tree.map(lambda a, b: lax.select(condition, jnp.asarray(a), jnp.asarray(b)), yes, no)


def any_game(flag: jax.Array) -> jax.Array:
    """Whether the flag is set in any game of the batch."""
    return lax.pmax(flag.astype(jnp.int32), GAMES) > 0


def compute_once(needed: jax.Array, compute: Callable[[], _Tree]) -> _Tree:
    """Computes `compute()` once and materialises it; zeros if no game of the batch needs it.

    Use it for the few values that many others are computed from. XLA on CPU fuses elementwise
    operations into each of their consumers and recomputes them in each; it cannot fuse into a
    branch.

    Args:
        needed: bool, whether this game needs the value. If every game always does, pass a value
            that is true but unknown to the compiler, such as `state.stage > 0`.
        compute: returns a tree of arrays.
    """
    traced, shapes = jax.make_jaxpr(compute, return_shape=True)()
    values = lax.cond(
        any_game(needed),
        jaxpr_as_fun(traced),
        lambda: [lax.full(x.shape, 0, x.dtype) for x in traced.out_avals],
    )
    return jax.tree.unflatten(jax.tree.structure(shapes), values)


def repeat(count: jax.Array, body: Callable[[jax.Array, _Tree], _Tree], carry: _Tree) -> _Tree:
    """Runs `body(i, carry)` for i from 0 up to the largest count of the batch.

    The body must change nothing if i is not below its own game's count.
    """
    return lax.fori_loop(0, lax.pmax(count, GAMES), body, carry)


def repeat_while(
    wants_more: Callable[[_Tree], jax.Array], body: Callable[[_Tree], _Tree], carry: _Tree
) -> _Tree:
    """Runs `body(carry)` as long as any game wants more.

    The body must change nothing for games that do not.
    """
    return lax.while_loop(lambda carry: any_game(wants_more(carry)), body, carry)
