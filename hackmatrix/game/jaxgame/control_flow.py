"""Selections, branches and loops for games in parallel.

A rule is written for any number of games: each scalar of a game is a vector with one element for
each of them (`batch.py`), and all games execute the same operations. A condition or trip count is
reduced over all games to one scalar, so a branch stays a branch and a loop stays a plain loop,
without a select over everything it carries. Both are also barriers: XLA does not fuse operations
across them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_Tree = TypeVar("_Tree")

_ACCELERATORS_TOO = ContextVar("accelerators too", default=False)


def by_platform(
    *operands: Any, cpu: Callable[..., _Tree], accelerator: Callable[..., _Tree]
) -> _Tree:
    """`lax.platform_dependent`, of which only `cpu` is traced where JAX has nothing but CPUs.

    That spares more than a third of the tracing of a step. What is compiled there for other chips
    is traced inside `accelerators_too`.
    """
    if jax.default_backend() == "cpu" and not _ACCELERATORS_TOO.get():
        return cpu(*operands)
    result: _Tree = lax.platform_dependent(*operands, cpu=cpu, default=accelerator)
    return result


@contextmanager
def accelerators_too() -> Iterator[None]:
    """Traces what is for accelerators on a machine that has none."""
    jax.clear_caches()  # jaxprs of CPUs alone
    before = _ACCELERATORS_TOO.set(True)
    try:
        yield
    finally:
        _ACCELERATORS_TOO.reset(before)


def where(condition: jax.Array, yes: Any, no: Any) -> jax.Array:
    """`jnp.where` for values of one dtype and Python numbers, several times as fast to trace.

    Two Python numbers give int32.
    """
    dtype = next((x.dtype for x in (yes, no) if hasattr(x, "dtype")), np.int32)
    shape = max(jnp.shape(condition), jnp.shape(yes), jnp.shape(no), key=len)
    return lax.select(condition, *(_full(x, shape, dtype) for x in (yes, no)))


def _full(value: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    if jnp.shape(value) == shape:
        return lax.convert_element_type(value, dtype)
    return lax.full(shape, value, dtype)


def select(condition: jax.Array, yes: _Tree, no: _Tree) -> _Tree:
    """Selects one of two trees for each game."""
    return jax.tree.map(lambda a, b: where(condition, a, b), yes, no)


def looked_up(table: Sequence[int], index: jax.Array) -> jax.Array:
    """int32: the entry of a short table, as choices: kernels of TPUs have no gather."""
    entry = lax.full(index.shape, int(table[0]), np.int32)
    for i, value in enumerate(table[1:], start=1):
        entry = where(index == i, int(value), entry)
    return entry


def any_game(flag: jax.Array) -> jax.Array:
    """Whether the flag is set in any game."""
    return lax.reduce_or(flag, range(flag.ndim))


def for_all(tree: _Tree, like: jax.Array) -> _Tree:
    """The tree with each constant repeated for each game; `like` has an element for each."""
    return jax.tree.map(lambda x: _full(x, jnp.shape(like), x.dtype), tree)


def compute_once(
    needed: jax.Array, compute: Callable[[], _Tree], otherwise: _Tree | None = None
) -> _Tree:
    """Computes `compute()` once and materialises it, if any game needs it.

    Use it for the few values that many others are computed from. XLA on CPU fuses elementwise
    operations into each of their consumers and recomputes them in each; it cannot fuse into a
    branch.

    Args:
        needed: bool, whether a game needs the value. If every game always does, pass a value
            that is true but unknown to the compiler, such as `state.stage > 0`.
        compute: returns a tree of arrays.
        otherwise: the result if no game needs it, zeros by default.
    """
    shapes: list[_Tree] = []

    def computed() -> _Tree:
        values = compute()
        shapes.append(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), values))
        return values

    def skipped() -> _Tree:
        if otherwise is not None:
            return otherwise
        shape = shapes[0] if shapes else jax.eval_shape(compute)  # in this order it is traced once
        return jax.tree.map(lambda x: lax.full(x.shape, 0, x.dtype), shape)

    values: _Tree = lax.cond(any_game(needed), computed, skipped)
    return values


def repeat(count: jax.Array, body: Callable[[jax.Array, _Tree], _Tree], carry: _Tree) -> _Tree:
    """Runs `body(i, carry)` for i from 0 up to the largest count of all games.

    The body must change nothing if i is not below its own game's count.
    """
    with jax.named_scope(name_of(body)):
        most = lax.reduce_max(count, range(count.ndim))
        return lax.fori_loop(0, most, body, for_all(carry, count))


def rounds(count: int, body: Callable[[Any, _Tree], _Tree], carry: _Tree) -> _Tree:
    """Runs `body(i, carry)` for i from 0 up to a small number.

    It is a loop on CPUs. On accelerators it is written out: their compilers make a few kernels of
    all of it, while a loop starts several in each round.
    """

    def loop(carry: _Tree) -> _Tree:
        return lax.fori_loop(0, count, body, carry)

    def written_out(carry: _Tree) -> _Tree:
        for i in range(count):
            carry = body(jnp.int32(i), carry)
        return carry

    return by_platform(carry, cpu=loop, accelerator=written_out)


def repeat_while(
    wants_more: Callable[[_Tree], jax.Array], body: Callable[[_Tree], _Tree], carry: _Tree
) -> _Tree:
    """Runs `body(carry)` as long as any game wants more.

    The body must change nothing for games that do not.
    """
    return while_loop(lambda carry: any_game(wants_more(carry)), body, carry)


def while_loop(
    goes_on: Callable[[_Tree], jax.Array], body: Callable[[_Tree], _Tree], carry: _Tree
) -> _Tree:
    """`lax.while_loop` under the name of the function that it is written in.

    Profiles then name each loop, and `cloud/targets/compiling.py` finds it.
    """
    with jax.named_scope(name_of(body)):
        return lax.while_loop(goes_on, body, carry)


def name_of(body: Callable[..., Any]) -> str:
    """The module and the function that a loop's body is written in, as `stage.draw_layout`."""
    return f"{body.__module__.rpartition('.')[2]}.{body.__qualname__.partition('.')[0]}"
