"""Loops whose length one game decides for all, and values that are computed once.

Every rule runs under `jax.vmap(..., axis_name=GAMES)` (see `batch.py`). A trip count taken over
that axis is one scalar for the whole batch, so a loop stays a plain loop: no select over its carry.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

GAMES = "games"
_Carry = TypeVar("_Carry")


def any_game(flag: jax.Array) -> jax.Array:
    """Whether the flag is set in any game of the batch."""
    return lax.pmax(flag.astype(jnp.int32), GAMES) > 0


def compute_once(needed: jax.Array, compute: Callable[[], _Carry]) -> _Carry:
    """`compute()`, worked out here and kept; zeros when no game of the batch needs it.

    For the few values that many others are made from. XLA on CPU fuses elementwise operations into
    each of their readers and works them out again there; it can't look into a branch.
    """
    traced, shapes = jax.make_jaxpr(compute, return_shape=True)()
    values = lax.cond(
        any_game(needed),
        jaxpr_as_fun(traced),
        lambda: [lax.full(x.shape, 0, x.dtype) for x in traced.out_avals],
    )
    return jax.tree.unflatten(jax.tree.structure(shapes), values)


def repeat(count: jax.Array, body: Callable[[jax.Array, _Carry], _Carry], carry: _Carry) -> _Carry:
    """Run `body(i, carry)` for i up to the largest count of the batch.

    The body must change nothing when i is not below its own game's count.
    """
    return lax.fori_loop(0, lax.pmax(count, GAMES), body, carry)


def repeat_while(
    wants_more: Callable[[_Carry], jax.Array], body: Callable[[_Carry], _Carry], carry: _Carry
) -> _Carry:
    """Run `body(carry)` as long as any game wants more.

    The body must change nothing for a game that does not.
    """
    return lax.while_loop(lambda carry: any_game(wants_more(carry)), body, carry)
