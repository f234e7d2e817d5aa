"""A small value for each index, stored as bit planes: plane b is the set of indices with bit b.

An index is a cell of the board or a slot of a list (`bitboard.py`). Enemies with 3, 2 and 1 hp are
the two planes {0, 2} (bit 0 is set in 3 and 1) and {0, 1} (bit 1 is set in 3 and 2). An operation
on all indices at once is then a few operations on sets, however many indices there are.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import Set32, Set36, col_of, row_of
from hackmatrix.game.jaxgame.control_flow import compute_once, rounds, where
from hackmatrix.game.rules.board import SIZE

_Set = TypeVar("_Set", Set36, Set32)
_Tree = TypeVar("_Tree")
_LONG = 8  # numbers of more planes are counted down in a loop
BitPlanes = tuple[_Set, ...]  # lowest bit first; as many planes as the largest number has bits


def get(values: BitPlanes[_Set], index: jax.Array) -> jax.Array:
    """int32: the value at an index."""
    bits = [plane.has(index).astype(jnp.int32) << b for b, plane in enumerate(values)]
    return sum(bits[1:], bits[0])


def put(values: BitPlanes[_Set], members: _Set, value: jax.Array) -> BitPlanes[_Set]:
    """The values with those at `members` set to one value."""
    return tuple(
        (plane & ~members) | members.only_if(_bit(value, b)) for b, plane in enumerate(values)
    )


def clear(values: BitPlanes[_Set], members: _Set) -> BitPlanes[_Set]:
    """The values with those at `members` set to 0."""
    return tuple(plane & ~members for plane in values)


def equal(values: BitPlanes[_Set], value: jax.Array | int) -> _Set:
    """The indices whose value equals `value`."""
    result = _with_bit(values[0], value, 0)
    for b, plane in enumerate(values[1:], start=1):
        result &= _with_bit(plane, value, b)
    return result


def one_of(values: BitPlanes[_Set], wanted: Sequence[int]) -> _Set:
    """The indices whose value is one of these, known at compile time."""
    result = equal(values, int(wanted[0]))
    for value in wanted[1:]:
        result |= equal(values, int(value))
    return result


def _with_bit(plane: _Set, value: jax.Array | int, b: int) -> _Set:
    """The indices whose bit b equals that of `value`."""
    if isinstance(value, int):
        return plane if value >> b & 1 else ~plane
    return ~(plane ^ type(plane).all_if(_bit(value, b)))


def at_least(values: BitPlanes[_Set], value: jax.Array) -> _Set:
    """The indices whose value is at least `value`."""
    set_type = type(values[0])
    result = set_type.all_if(jnp.bool(True))
    for b, plane in enumerate(values):  # a higher bit decides over the lower ones
        wanted = set_type.all_if(_bit(value, b))
        result = (plane & ~wanted) | (~(plane ^ wanted) & result)
    return result


def one_hot(values: BitPlanes[_Set], count: int) -> list[_Set]:
    """For each value below `count`, the indices that have it."""
    sets: list[_Set] = [~values[-1], values[-1]]
    for plane in reversed(values[:-1]):
        sets = [part & side for part in sets for side in (~plane, plane)]
    return sets[:count]


def less(a: BitPlanes[_Set], b: BitPlanes[_Set]) -> _Set:
    """The indices where `a` is less than `b` (both with the same number of planes)."""
    result = ~a[0] & b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        result = (~x & y) | (~(x ^ y) & result)
    return result


def nonzero(values: BitPlanes[_Set]) -> _Set:
    """The indices where the value is not 0."""
    result = values[0]
    for plane in values[1:]:
        result |= plane
    return result


def at_most(values: BitPlanes[_Set], largest: int) -> BitPlanes[_Set]:
    """The values, or `largest`, a power of 2 less 1, where they exceed it."""
    width = largest.bit_length()
    exceeds = nonzero(values[width:])
    return tuple(plane | exceeds for plane in values[:width])


def increment(values: BitPlanes[_Set], members: _Set) -> BitPlanes[_Set]:
    """The values plus 1 at some indices; the largest value wraps to 0."""
    result = []
    for plane in values:
        result.append(plane ^ members)
        members = members & plane
    return tuple(result)


def decrement(values: BitPlanes[_Set], members: _Set) -> BitPlanes[_Set]:
    """The values minus 1 at some indices, where none may be 0."""
    if len(values) > _LONG:
        # A loop: written out, each plane would be computed from all planes below it once more.
        _, less = lax.scan(
            lambda left, plane: (left & ~plane, plane ^ left), members, _stacked(values)
        )
        return _unstacked(less)
    result = []
    for plane in values:
        result.append(plane ^ members)
        members = members & ~plane
    return tuple(result)


def subtract(
    values: BitPlanes[_Set], members: _Set, value: jax.Array
) -> tuple[BitPlanes[_Set], _Set]:
    """The values minus `value` at some indices, and the indices where the result is negative.

    There the result wraps: it is the true difference plus 2 to the number of planes.
    """
    result: list[_Set] = []
    borrow = members.only_if(jnp.bool(False))
    for b, plane in enumerate(values):
        operand = members.only_if(_bit(value, b))
        result.append(plane ^ operand ^ borrow)
        borrow = (~plane & (operand | borrow)) | (operand & borrow)
    return tuple(result), borrow


def add(a: BitPlanes[_Set], b: BitPlanes[_Set]) -> BitPlanes[_Set]:
    """The sums for each index, with one plane more (both inputs have the same number of planes)."""
    result: list[_Set] = [a[0] ^ b[0]]
    carry = a[0] & b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        half = x ^ y
        result.append(half ^ carry)
        carry = (x & y) | (half & carry)
    result.append(carry)
    return tuple(result)


def total(values: BitPlanes[_Set], members: _Set) -> jax.Array:
    """int32: the sum of the values at some indices."""
    sizes = [(plane & members).size() << b for b, plane in enumerate(values)]
    return sum(sizes[1:], sizes[0])


def largest(values: BitPlanes[_Set], members: _Set) -> jax.Array:
    """int32: the largest value at some indices, 0 if there are none."""
    # From the highest bit down: if a member has it, only those that do stay. One round a plane.
    result = jnp.int32(0)
    for b in reversed(range(len(values))):
        with_bit = members & values[b]
        has_bit = with_bit.any()
        result += has_bit.astype(jnp.int32) << b
        members = bitboard.select(has_bit, with_bit, members)
    return result


def members_of_smallest(values: BitPlanes[_Set], members: _Set) -> _Set:
    """The members among `members` whose value is the smallest."""
    for plane in reversed(values):
        without_bit = members & ~plane
        members = bitboard.select(without_bit.any(), without_bit, members)
    return members


def select(members: _Set, yes: BitPlanes[_Set], no: BitPlanes[_Set]) -> BitPlanes[_Set]:
    """The values of `yes` at some indices, and of `no` at all others."""
    return tuple((a & members) | (b & ~members) for a, b in zip(yes, no, strict=True))


def _stacked(sets: Sequence[_Set]) -> _Set:
    """Several sets as one, whose words have an axis more, the first."""
    return jax.tree.map(lambda *words: jnp.stack(words), *sets)


def _unstacked(sets: _Set) -> BitPlanes[_Set]:
    """The sets that were stacked."""

    def one(i: int) -> _Set:
        return jax.tree.map(lambda x: lax.index_in_dim(x, i, keepdims=False), sets)

    return tuple(one(i) for i in range(len(jax.tree.leaves(sets)[0])))


def compress(sets: _Tree, stays: Any) -> _Tree:
    """A tree of sets of slots after removing the slots that are not in `stays` (`Set36.compress`).

    The words of all sets are one array here, so that they are one operation.
    """
    leaves, tree = jax.tree.flatten(sets, is_leaf=is_set)
    words = _stacked(leaves)

    def apply() -> Any:
        plan = stays.compression()
        return jax.vmap(lambda slots: slots.compress(plan))(words)

    # If no slot stays, the zeros of `compute_once` are right.
    result = compute_once(stays.any(), apply)
    return jax.tree.unflatten(tree, _unstacked(result))


def is_set(tree: object) -> bool:
    """Whether this is a set, for functions over trees of sets."""
    return isinstance(tree, Set36 | Set32)


def _bit(value: jax.Array, b: int) -> jax.Array:
    bit = value.dtype.type(1 << b)
    return lax.ne(lax.bitwise_and(value, bit), value.dtype.type(0))


class Coordinates(NamedTuple, Generic[_Set]):
    """The cells of the pieces in a list: row and column, three planes each."""

    row: BitPlanes[_Set]
    col: BitPlanes[_Set]

    def at(self, slot: jax.Array) -> jax.Array:
        """int32: the cell of the piece in a slot."""
        return get(self.row, slot) * SIZE + get(self.col, slot)

    def on(self, cell: jax.Array) -> _Set:
        """The slots of the pieces on a cell; slots without a piece count as on cell 0."""
        return self.in_row(row_of(cell)) & self.in_col(col_of(cell))

    def in_row(self, value: jax.Array) -> _Set:
        """The slots of the pieces in a row."""
        return equal(self.row, value)

    def in_col(self, value: jax.Array) -> _Set:
        """The slots of the pieces in a column."""
        return equal(self.col, value)

    def moved(self, members: _Set, cell: jax.Array) -> "Coordinates[_Set]":
        """The coordinates with the pieces in some slots moved to a cell."""
        return Coordinates(
            put(self.row, members, row_of(cell)), put(self.col, members, col_of(cell))
        )

    def cells(self, *members: _Set) -> list[Set36]:
        """For each set of slots, the set of cells of their pieces.

        It loops over two rows at a time, one of each half of the board: a third of the code.
        """
        cols = one_hot(self.col, SIZE)

        def look(i: jax.Array, so_far: list[Set36]) -> list[Set36]:
            low, high = equal(self.row, i), equal(self.row, i + SIZE // 2)
            shift = (i * SIZE).astype(jnp.uint32)
            return [
                cells
                | Set36(
                    _row_bits(low & slots, cols) << shift, _row_bits(high & slots, cols) << shift
                )
                for cells, slots in zip(so_far, members, strict=True)
            ]

        nowhere = members[0].any().astype(jnp.uint32) & 0  # a zero that varies by game
        return rounds(SIZE // 2, look, [Set36(nowhere, nowhere)] * len(members))

    def within(self, members: _Set, cells: Set36) -> _Set:
        """The members that are on these cells."""
        cols = one_hot(self.col, SIZE)
        none = members ^ members

        def look(i: jax.Array, so_far: _Set) -> _Set:
            shift = (i * SIZE).astype(jnp.uint32)
            for half, word in enumerate(cells):
                row, there = equal(self.row, i + half * (SIZE // 2)), none
                row_word = word >> shift
                for col, slots in enumerate(cols):
                    there |= slots.only_if(_bit(row_word, col))
                so_far |= row & there
            return so_far

        return members & rounds(SIZE // 2, look, none)

    def first_on_each_cell(self, members: _Set) -> _Set:
        """The members that are the first in the list on their cell."""
        # The lowest slot of each of the 36 cells, a row of cells a round: a sixth of the code.
        cols = one_hot(self.col, SIZE)

        def look(i: jax.Array, so_far: _Set) -> _Set:
            row = equal(self.row, i) & members
            for slots in cols:
                so_far |= (row & slots).first()
            return so_far

        return rounds(SIZE, look, members ^ members)


def _row_bits(row: _Set, cols: list[_Set]) -> jax.Array:
    """uint32: bit c is set if a piece in a row is in column c."""
    bits = [where((row & slots).any(), np.uint32(1 << col), 0) for col, slots in enumerate(cols)]
    return reduce(lax.bitwise_or, bits)
