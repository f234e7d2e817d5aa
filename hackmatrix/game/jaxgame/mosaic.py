"""Functions of games as kernels for TPUs, by Pallas, whose compiler for them is called Mosaic.

A function is traced as for XLA, and the traced operations are put in a kernel. What Mosaic does not
take, or takes with another meaning, is put otherwise on the way: loops and branches carry integers
instead of bools, a choice between bools is logic, short loops are written out, and shifts by 32 and
more places give 0, as they do in XLA. So no rule is written twice.

A kernel works on blocks of 1,024 games: a number of each is one register of a TPU, 8 x 128 words.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

BLOCK = (8, 128)
GAMES_OF_A_BLOCK = 8 * 128
_WIDTH = 32  # bits of a word


def in_blocks(
    rule: Callable[..., Any], state: Any, *others: Any, interpret: bool = False
) -> tuple[Any, Any]:
    """The result of `rule(state, *others)`, by a kernel: a state as the given one, and more.

    Args:
        rule: takes and returns trees of arrays; in all of them the last axes are those of games.
        state: a tree of arrays [..., n], whose memory the new state takes.
        others: trees of such arrays. n is a multiple of 1,024.
        interpret: whether JAX plays the kernel, on a machine without a TPU.
    """
    given, tree = jax.tree.flatten((state, *others))
    replaced, games = len(jax.tree.leaves(state)), given[0].shape[-1]

    def block_of(x: jax.Array) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*x.shape[:-1], *BLOCK), x.dtype)

    blocks = jax.tree.unflatten(tree, list(map(block_of, given)))
    traced, results = jax.make_jaxpr(rule, return_shape=True)(*blocks)
    made, made_tree = jax.tree.flatten(results)

    def kernel(*references: Any) -> None:
        inputs, outputs = references[: len(given)], references[len(given) :]
        values = [
            _as(x.dtype, reference[...]) for x, reference in zip(given, inputs, strict=True)
        ]
        for reference, value in zip(outputs, evaluated(traced, *values), strict=True):
            reference[...] = _as_word(value)

    def spec(shape: Sequence[int]) -> Any:
        before = len(shape) - len(BLOCK)
        return pl.BlockSpec(tuple(shape), lambda i: (*(0,) * before, i, 0))

    rows = games // BLOCK[1]
    call = pl.pallas_call(
        kernel,
        grid=(games // GAMES_OF_A_BLOCK,),
        in_specs=[spec((*x.shape[:-1], *BLOCK)) for x in given],
        out_specs=[spec(x.shape) for x in made],
        out_shape=[
            jax.ShapeDtypeStruct((*x.shape[: -len(BLOCK)], rows, BLOCK[1]), _word_of(x.dtype))
            for x in made
        ],
        input_output_aliases={i: i for i in range(replaced)},
        # Blocks do not depend on each other: those of a v4 or v5p go to both of its cores.
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )
    words = [_as_word(x).reshape(*x.shape[:-1], rows, BLOCK[1]) for x in given]
    out = [
        _as(x.dtype, word.reshape(*word.shape[:-2], games))
        for x, word in zip(made, call(*words), strict=True)
    ]
    return jax.tree.unflatten(made_tree, out)


def evaluated(traced: ClosedJaxpr, *arguments: Any) -> list[Any]:
    """The results of a traced function, with what Mosaic does not take put otherwise."""
    jaxpr = traced.jaxpr
    values = dict(zip(jaxpr.constvars, traced.consts, strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def read(x: Any) -> Any:
        return x.val if isinstance(x, Literal) else values[x]

    for eqn in _used(jaxpr):
        rule = _RULES.get(eqn.primitive.name, _as_it_is)
        values |= dict(zip(eqn.outvars, rule(eqn, *map(read, eqn.invars)), strict=True))
    return list(map(read, jaxpr.outvars))


def _used(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """The operations that the results are made from."""
    wanted, used = set(map(id, jaxpr.outvars)), []
    for eqn in reversed(jaxpr.eqns):
        if any(id(x) in wanted for x in eqn.outvars):
            wanted |= set(map(id, eqn.invars))
            used.append(eqn)
    return used[::-1]


def _as_it_is(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    if all(isinstance(x, np.generic) for x in arguments) and eqn.outvars[0].aval.shape == ():
        with jax.ensure_compile_time_eval():  # numbers known now, such as the index of a round
            return [np.asarray(eqn.primitive.bind(*arguments, **eqn.params))[()]]
    made = eqn.primitive.bind(*arguments, **eqn.params)
    return list(made) if eqn.primitive.multiple_results else [made]


def _written_out(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    return evaluated(eqn.params["jaxpr"], *arguments)


def _while(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    asked, used = arguments[:first], arguments[first : first + second]
    start = arguments[first + second :]
    dtypes = [x.aval.dtype for x in eqn.outvars]
    end = lax.while_loop(
        lambda words: evaluated(condition, *asked, *_all_as(dtypes, words))[0],
        lambda words: _as_words(evaluated(body, *used, *_all_as(dtypes, words))),
        _as_words(start),
    )
    return _all_as(dtypes, end)


def _cond(eqn: JaxprEqn, index: Any, *arguments: Any) -> list[Any]:
    branches = eqn.params["branches"]
    if isinstance(index, np.generic):
        return evaluated(branches[int(index)], *arguments)
    dtypes = [x.aval.dtype for x in eqn.outvars]
    sides = [
        lambda side=side: _as_words(evaluated(side, *arguments))  # type: ignore[misc]
        for side in branches
    ]
    return _all_as(dtypes, lax.cond(index != 0, sides[1], sides[0]))


def _scan(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    constants, carried = eqn.params["num_consts"], eqn.params["num_carry"]
    used, carry = arguments[:constants], list(arguments[constants : constants + carried])
    each = arguments[constants + carried :]
    assert not eqn.params["reverse"]
    made = []
    for i in range(eqn.params["length"]):
        out = evaluated(eqn.params["jaxpr"], *used, *carry, *(x[i] for x in each))
        carry = out[:carried]
        made.append(out[carried:])
    return [*carry, *(jnp.stack(column) for column in zip(*made, strict=True))]


def _platform(eqn: JaxprEqn) -> list[Any]:
    """A kernel takes what is written for accelerators: the default."""
    return [np.int32(eqn.params["platforms"].index(None))]


def _select(eqn: JaxprEqn, condition: Any, no: Any, yes: Any) -> list[Any]:
    if eqn.outvars[0].aval.dtype != bool:
        return _as_it_is(eqn, condition, no, yes)
    return [(condition & yes) | (~condition & no)]


def _any(eqn: JaxprEqn, flags: Any) -> list[Any]:
    return [jnp.max(_as_word(flags), axis=eqn.params["axes"]) > 0]


def _sum(eqn: JaxprEqn, words: Any) -> list[Any]:
    """Mosaic sums no unsigned words; as signed ones they come out the same."""
    total = jnp.sum(words.astype(np.int32), axis=eqn.params["axes"])
    return [total.astype(words.dtype)]


def _shift(eqn: JaxprEqn, word: Any, places: Any) -> list[Any]:
    (shifted,) = _as_it_is(eqn, word, places)
    if isinstance(places, np.generic):
        assert places < _WIDTH
        return [shifted]
    places = jnp.broadcast_to(places, shifted.shape).astype(np.uint32)
    is_short = places < np.uint32(_WIDTH)
    return [lax.select(is_short, shifted, jnp.zeros_like(shifted))]


_RULES: dict[str, Callable[..., list[Any]]] = {
    "jit": _written_out,
    "while": _while,
    "cond": _cond,
    "scan": _scan,
    "platform_index": _platform,
    "select_n": _select,
    "reduce_or": _any,
    "reduce_sum": _sum,
    "shift_left": _shift,
    "shift_right_logical": _shift,
}


def _as_word(x: Any) -> Any:
    """The value, bools of games as 0 and 1."""
    return jnp.where(x, np.int32(1), np.int32(0)) if x.dtype == bool and x.ndim else x


def _as(dtype: Any, word: Any) -> Any:
    return word != 0 if dtype == bool and word.dtype != bool else word


def _word_of(dtype: Any) -> Any:
    return np.dtype(np.int32) if dtype == bool else dtype


def _as_words(values: Sequence[Any]) -> list[Any]:
    return list(map(_as_word, values))


def _all_as(dtypes: Sequence[Any], words: Sequence[Any]) -> list[Any]:
    return list(map(_as, dtypes, words))
