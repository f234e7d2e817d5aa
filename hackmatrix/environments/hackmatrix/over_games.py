"""The primitive through which the batch functions are called for one game, mapped or not."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from hackmatrix.core.jax_defaults import with_jax_defaults


def over_games(
    rule: Callable[..., Any], results: Callable[..., Any], **settings: Hashable
) -> Callable[..., Any]:
    """Makes a function of n games callable for one game, such that `jax.vmap` of it calls `rule`.

    Mapped twice, both axes become one batch. Because it is a primitive, the rule is traced only for
    the batch that is really played; `jax.custom_vmap` would trace it for a single game first.
    The result can be pickled if `rule`, `results` and `settings` can.

    Args:
        rule: a function of a module, so that its name says which it is; it takes and returns trees
            of arrays with a leading axis of games.
        results: returns the result for one game as a tree of `jax.ShapeDtypeStruct`, from
            arguments of the same kind.
        settings: keyword arguments of the rule.
    """
    return partial(_one_game, rule, results, tuple(settings.items()))


def _one_game(
    rule: Callable[..., Any], results: Callable[..., Any], settings: Any, *args: Any
) -> Any:
    leaves, tree = jax.tree.flatten(jax.tree.map(jnp.asarray, args))
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
    made, made_tree = jax.tree.flatten(results(*jax.tree.unflatten(tree, shapes)))
    batch = [x[None] for x in leaves]
    out = _over_games.bind(*batch, rule=rule, settings=settings, tree=tree, results=tuple(made))
    return jax.tree.unflatten(made_tree, [x[0] for x in out])


_over_games = Primitive("over_games")
_over_games.multiple_results = True


def _play(
    *leaves: jax.Array, rule: Callable[..., Any], settings: Any, tree: Any, results: Any
) -> list[jax.Array]:
    del results
    return jax.tree.leaves(rule(*jax.tree.unflatten(tree, leaves), **dict(settings)))


def _result_avals(games: Any, *_: Any, results: Any, **__: Any) -> list[ShapedArray]:
    return [ShapedArray((games.shape[0], *x.shape), x.dtype) for x in results]


def _play_mapped(leaves: Any, axes: Any, **params: Any) -> tuple[list[jax.Array], list[int]]:
    """The batching rule of the primitive: merges two axes of games into one."""
    size = next(x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None)
    both = [
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(leaves, axes, strict=True)
    ]
    out = _over_games.bind(*(x.reshape(-1, *x.shape[2:]) for x in both), **params)
    return [x.reshape(size, -1, *x.shape[1:]) for x in out], [0] * len(out)


@with_jax_defaults
def _lower(context: mlir.LoweringRuleContext, *leaves: Any, **params: Any) -> Any:
    """The lowering rule of the primitive."""
    return mlir.lower_fun(partial(_play, **params), multiple_results=True)(context, *leaves)


_over_games.def_impl(
    jax.jit(_over_games.bind, static_argnames=("rule", "settings", "tree", "results"))
)
_over_games.def_abstract_eval(_result_avals)
batching.primitive_batchers[_over_games] = _play_mapped
mlir.register_lowering(_over_games, _lower)
