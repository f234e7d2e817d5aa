"""Functions of games as kernels for TPUs, by Pallas, whose compiler for them is called Mosaic.

A function is traced as for XLA, and the traced operations are put in a kernel. What Mosaic does not
take, or takes with another meaning, is put otherwise on the way: loops and branches carry integers
instead of bools, a choice between bools is logic, short loops are written out, and shifts by 32 and
more places give 0, as they do in XLA. So no rule is written twice.

A kernel works on blocks of 1,024 games: a number of each is one register of a TPU, 8 x 128 words.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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


@partial(jax.tree_util.register_dataclass, data_fields=["packed"], meta_fields=["rows", "dtype"])
@dataclass(frozen=True)
class Bytes:
    """Numbers of a byte each, as a rule returns them: they leave the kernel as [rows, n].

    In the memory of a TPU four rows of bytes lie in one of words; so does an array of bytes that a
    kernel is given come to its rule.
    """

    packed: jax.Array  # uint32[k, ...], each of four rows, the first in the lowest bits
    rows: int  # at most 4 k
    dtype: Any = np.uint8


def in_blocks(
    rule: Callable[..., Any], state: Any, *others: Any, interpret: bool = False
) -> tuple[Any, Any]:
    """The result of `rule(state, *others)`, by a kernel: a state as the given one, and more.

    Args:
        rule: takes and returns trees of arrays; in all of them the last axes are those of games.
            Bytes [r, n] come to it as uint32[r / 4, 8, 128], and it returns them as `Bytes`.
        state: a tree of arrays [..., n], whose memory the new state takes.
        others: trees of such arrays. n is a multiple of 1,024.
        interpret: whether JAX plays the kernel, on a machine without a TPU.
    """
    inputs_flat, tree = jax.tree.flatten((state, *others))
    games = inputs_flat[0].shape[-1]
    ins = [_Port(x.shape[:-1], x.dtype) for x in inputs_flat]
    traced, results = jax.make_jaxpr(rule, return_shape=True)(
        *jax.tree.unflatten(tree, [port.inside for port in ins])
    )
    results_flat, made_tree = jax.tree.flatten(results, is_leaf=lambda x: isinstance(x, Bytes))
    outs = [
        _Port((x.rows,), x.dtype) if isinstance(x, Bytes) else _Port(x.shape[:-2], x.dtype)
        for x in results_flat
    ]

    def kernel(*references: Any) -> None:
        *ports, scratch = references
        inputs, outputs = ports[: len(ins)], ports[len(ins) :]
        values = [port.read(x, scratch) for port, x in zip(ins, inputs, strict=True)]
        results = evaluate(traced, *values)
        for port, x, value in zip(outs, outputs, results, strict=True):
            port.write(x, value, scratch)

    num_words = max(port.num_words for port in ins + outs)
    call = pl.pallas_call(
        kernel,
        grid=(games // GAMES_OF_A_BLOCK,),
        in_specs=[port.spec for port in ins],
        out_specs=[port.spec for port in outs],
        out_shape=[port.outside(games) for port in outs],
        input_output_aliases={i: i for i in range(len(jax.tree.leaves(state)))},
        scratch_shapes=[pltpu.VMEM((num_words * BLOCK[0], BLOCK[1]), np.dtype(np.uint32))],
        # Blocks do not depend on each other: those of a v4 or v5p go to both of its cores.
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )
    results = call(*(port.put(x, games) for port, x in zip(ins, inputs_flat, strict=True)))
    out = [port.take(x, games) for port, x in zip(outs, results, strict=True)]
    return jax.tree.unflatten(made_tree, out)


class _Port(NamedTuple):
    """An array that a kernel is given or makes, and how it gets in or out.

    A vector [n] is in a TPU's memory as its registers are: 1,024 games a tile. A tile of a matrix
    [k, n] has eight rows of 128 games; its words get there by way of a scratch memory.
    """

    before: tuple[int, ...]  # () of a vector, (k,) of a matrix
    dtype: Any

    @property
    def is_bytes(self) -> bool:
        """Whether it is a matrix of bytes."""
        return self.dtype in (np.uint8, np.int8)

    @property
    def num_words(self) -> int:
        """Words of each game that it takes, in whole tiles."""
        (rows,) = self.before or (1,)
        return -(-rows // 8) * (2 if self.is_bytes else 8)

    @property
    def inside(self) -> jax.ShapeDtypeStruct:
        """A block of it as the rule gets it."""
        if self.is_bytes:
            return jax.ShapeDtypeStruct((-(-self.before[0] // 4), *BLOCK), np.uint32)
        return jax.ShapeDtypeStruct((*self.before, *BLOCK), self.dtype)

    @property
    def spec(self) -> Any:
        """Where a block of it is."""
        if not self.before:
            return pl.BlockSpec(BLOCK, lambda i: (i, 0))
        rows = self.num_words * (4 if self.is_bytes else 1)
        return pl.BlockSpec((rows, GAMES_OF_A_BLOCK), lambda i: (0, i))

    def outside(self, games: int) -> jax.ShapeDtypeStruct:
        """The array as the kernel gets it."""
        if self.before:
            return jax.ShapeDtypeStruct((*self.before, games), self.dtype)
        dtype = np.int32 if _is_flag(self.dtype) else self.dtype
        return jax.ShapeDtypeStruct((games // BLOCK[1], BLOCK[1]), dtype)

    def put(self, x: jax.Array, games: int) -> jax.Array:
        """The array of `n` games as the kernel gets it."""
        return _as_word(x).reshape(self.outside(games).shape)

    def take(self, x: jax.Array, games: int) -> jax.Array:
        """The array that the kernel made, as the caller gets it."""
        return _as(self.dtype, x.reshape(*self.before, games))

    def read(self, reference: Any, scratch: Any) -> Any:
        """The value of a block; the scratch memory is uint32[8 x words, 128]."""
        if not self.before:
            return _as(self.dtype, reference[...])
        for rows, lanes, slots in self._tiles():
            scratch[slots, :] = pltpu.bitcast(reference[rows, lanes], np.uint32)
        depth = range(self.inside.shape[0])
        value = jnp.stack([scratch[word * BLOCK[0] : (word + 1) * BLOCK[0], :] for word in depth])
        return _bits_as(self.inside.dtype, value)

    def write(self, reference: Any, value: Any, scratch: Any) -> None:
        """Replaces a block."""
        if not self.before:
            reference[...] = _as_word(value)
            return
        for word in range(value.shape[0]):
            slots = slice(word * BLOCK[0], (word + 1) * BLOCK[0])
            scratch[slots, :] = _bits_as(np.uint32, value[word])
        for rows, lanes, slots in self._tiles():
            reference[rows, lanes] = pltpu.bitcast(scratch[slots, :], self.dtype)

    def _tiles(self) -> Iterator[tuple[slice, slice, Any]]:
        """The tiles of a block: rows, games, and the rows of its words in the scratch memory.

        There each word of the 1,024 games is a tile.
        """
        height = 2 if self.is_bytes else 8  # in each tile, which has eight rows
        for tile in range(self.num_words // height):
            for row in range(BLOCK[0]):
                yield (
                    slice(tile * 8, (tile + 1) * 8),
                    slice(row * BLOCK[1], (row + 1) * BLOCK[1]),
                    pl.ds(tile * height * BLOCK[0] + row, height, BLOCK[0]),
                )


def _bits_as(dtype: Any, x: Any) -> Any:
    return x if x.dtype == dtype else lax.bitcast_convert_type(x, dtype)


def evaluate(traced: ClosedJaxpr, *arguments: Any) -> list[Any]:
    """The results of a traced function, with what Mosaic does not take put otherwise."""
    jaxpr = traced.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_constant, traced.consts), strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def read(x: Any) -> Any:
        if not isinstance(x, Literal):
            return values[x]
        literal: Any = x
        return _constant(np.asarray(literal.val, literal.aval.dtype))

    for eqn in _used(jaxpr):
        rule: Callable[..., list[Any]] = _RULES.get(eqn.primitive.name, _as_it_is)
        results = rule(eqn, *map(read, eqn.invars))
        values.update(zip(eqn.outvars, results, strict=True))
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
    bind: Any = partial(eqn.primitive.bind, *arguments, **eqn.params)
    (first, *_) = _results(eqn)
    if all(isinstance(x, np.generic) for x in arguments) and first.shape == ():
        with jax.ensure_compile_time_eval():  # numbers known now, such as the index of a round
            return [np.asarray(bind())[()]]
    results = bind()
    return list(results) if eqn.primitive.multiple_results else [results]


def _written_out(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    return evaluate(eqn.params["jaxpr"], *arguments)


def _while(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    condition_arguments, body_arguments = arguments[:first], arguments[first : first + second]
    start = arguments[first + second :]
    dtypes = [x.dtype for x in _results(eqn)]
    end = lax.while_loop(
        lambda carry: evaluate(condition, *condition_arguments, *_all_as(dtypes, carry))[0],
        lambda carry: _as_words(evaluate(body, *body_arguments, *_all_as(dtypes, carry))),
        _as_words(start),
    )
    return _all_as(dtypes, end)


def _cond(eqn: JaxprEqn, index: Any, *arguments: Any) -> list[Any]:
    branches = eqn.params["branches"]
    if isinstance(index, np.generic):
        return evaluate(branches[int(index)], *arguments)
    dtypes = [x.dtype for x in _results(eqn)]
    sides = [lambda side=side: _as_words(evaluate(side, *arguments)) for side in branches]
    return _all_as(dtypes, lax.cond(index != 0, sides[1], sides[0]))


def _scan(eqn: JaxprEqn, *arguments: Any) -> list[Any]:
    constants, carried = eqn.params["num_consts"], eqn.params["num_carry"]
    body_arguments, carry = arguments[:constants], list(arguments[constants : constants + carried])
    xs = arguments[constants + carried :]
    assert not eqn.params["reverse"]
    results = []
    for i in range(eqn.params["length"]):
        out = evaluate(eqn.params["jaxpr"], *body_arguments, *carry, *(x[i] for x in xs))
        carry = out[:carried]
        results.append(out[carried:])
    return [*carry, *(jnp.stack(column) for column in zip(*results, strict=True))]


def _platform(eqn: JaxprEqn) -> list[Any]:
    """A kernel takes what is written for accelerators: the default."""
    return [np.int32(eqn.params["platforms"].index(None))]


def _select(eqn: JaxprEqn, condition: Any, no: Any, yes: Any) -> list[Any]:
    if not _is_flag(yes.dtype):
        return _as_it_is(eqn, condition, no, yes)
    return [(condition & yes) | (~condition & no)]


def _any(eqn: JaxprEqn, flags: Any) -> list[Any]:
    return [jnp.max(_as_word(flags), axis=eqn.params["axes"]) > 0]


def _constant(x: Any) -> Any:
    """Numbers known now, as a kernel takes them: an array [k, 1, 1] is written out.

    Those of 16 bits have 32, as not every TPU calculates with less.
    """
    if not isinstance(x, np.generic | np.ndarray):
        return x
    x = x.astype(np.int32) if x.dtype == np.int16 else x
    return jnp.stack([lax.full(BLOCK, entry) for entry in x.ravel()]) if x.ndim else x[()]


def _converted(eqn: JaxprEqn, x: Any) -> list[Any]:
    dtype = eqn.params["new_dtype"]
    return [lax.convert_element_type(x, np.int32 if dtype == np.int16 else dtype)]


def _joined(eqn: JaxprEqn, *parts: Any) -> list[Any]:
    """Mosaic joins no bools."""
    (shape,) = _results(eqn)
    return [_as(shape.dtype, x) for x in _as_it_is(eqn, *map(_as_word, parts))]


def _sum(eqn: JaxprEqn, values: Any) -> list[Any]:
    """Mosaic sums no unsigned words; as signed ones they come out the same."""
    total = jnp.sum(values.astype(np.int32), axis=eqn.params["axes"])
    return [total.astype(values.dtype)]


def _shift(eqn: JaxprEqn, word: Any, distance: Any) -> list[Any]:
    (shifted,) = _as_it_is(eqn, word, distance)
    if isinstance(distance, np.generic):
        assert int(distance) < _WIDTH
        return [shifted]
    distance = jnp.broadcast_to(distance, shifted.shape).astype(np.uint32)
    is_short = distance < np.uint32(_WIDTH)
    return [lax.select(is_short, shifted, jnp.zeros_like(shifted))]


_RULES: dict[str, Callable[..., list[Any]]] = {
    "jit": _written_out,
    "while": _while,
    "cond": _cond,
    "scan": _scan,
    "platform_index": _platform,
    "convert_element_type": _converted,
    "concatenate": _joined,
    "stack": _joined,
    "select_n": _select,
    "reduce_or": _any,
    "reduce_sum": _sum,
    "shift_left": _shift,
    "shift_right_logical": _shift,
}


def _results(eqn: JaxprEqn) -> list[Any]:
    """Shapes and dtypes of what an operation makes."""
    return [x.aval for x in eqn.outvars]


def _as_word(x: Any) -> Any:
    """The value, bools of games as 0 and 1."""
    return jnp.where(x, np.int32(1), np.int32(0)) if _is_flag(x.dtype) and x.ndim else x


def _as(dtype: Any, word: Any) -> Any:
    """The value of a word, a bool of 0 or 1."""
    return word != 0 if _is_flag(dtype) and not _is_flag(word.dtype) else word


def _is_flag(dtype: Any) -> bool:
    return np.dtype(dtype) == np.bool_


def _as_words(values: Sequence[Any]) -> list[Any]:
    return list(map(_as_word, values))


def _all_as(dtypes: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    return list(map(_as, dtypes, values))
