"""A small number for each place, stored as bit planes: plane b is the set of places with bit b.

A place is a cell of the board or a slot of a list (`bitboard.py`). Enemies with 3, 2 and 1 hp are
the two planes {0, 2} (bit 0 is set in 3 and 1) and {0, 1} (bit 1 is set in 3 and 2). An operation
on all places at once is then a few operations on sets, however many places there are.
"""

from collections.abc import Sequence
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
Numbers = tuple[_Set, ...]  # lowest bit first; as many planes as the largest number has bits


def get(numbers: Numbers[_Set], place: jax.Array) -> jax.Array:
    """int32: the number at a place."""
    bits = [plane.has(place).astype(jnp.int32) << b for b, plane in enumerate(numbers)]
    return sum(bits[1:], bits[0])


def put(numbers: Numbers[_Set], places: _Set, number: jax.Array) -> Numbers[_Set]:
    """The numbers with those at `places` set to one number."""
    return tuple(
        (plane & ~places) | places.only_if(_bit(number, b)) for b, plane in enumerate(numbers)
    )


def clear(numbers: Numbers[_Set], places: _Set) -> Numbers[_Set]:
    """The numbers with those at `places` set to 0."""
    return tuple(plane & ~places for plane in numbers)


def equal(numbers: Numbers[_Set], number: jax.Array | int) -> _Set:
    """The places whose number equals `number`."""
    result = _with_bit(numbers[0], number, 0)
    for b, plane in enumerate(numbers[1:], start=1):
        result &= _with_bit(plane, number, b)
    return result


def one_of(numbers: Numbers[_Set], wanted: Sequence[int]) -> _Set:
    """The places whose number is one of these, known at compile time."""
    result = equal(numbers, int(wanted[0]))
    for number in wanted[1:]:
        result |= equal(numbers, int(number))
    return result


def _with_bit(plane: _Set, number: jax.Array | int, b: int) -> _Set:
    """The places whose bit b equals that of `number`."""
    if isinstance(number, int):
        return plane if number >> b & 1 else ~plane
    return ~(plane ^ type(plane).all_if(_bit(number, b)))


def at_least(numbers: Numbers[_Set], number: jax.Array) -> _Set:
    """The places whose number is at least `number`."""
    kind = type(numbers[0])
    result = kind.all_if(jnp.bool(True))
    for b, plane in enumerate(numbers):  # a higher bit decides over the lower ones
        wanted = kind.all_if(_bit(number, b))
        result = (plane & ~wanted) | (~(plane ^ wanted) & result)
    return result


def one_hot(numbers: Numbers[_Set], count: int) -> list[_Set]:
    """For each number below `count`, the places that have it."""
    sets: list[_Set] = [~numbers[-1], numbers[-1]]
    for plane in reversed(numbers[:-1]):
        sets = [part & side for part in sets for side in (~plane, plane)]
    return sets[:count]


def less(a: Numbers[_Set], b: Numbers[_Set]) -> _Set:
    """The places where `a` is less than `b` (both with the same number of planes)."""
    result = ~a[0] & b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        result = (~x & y) | (~(x ^ y) & result)
    return result


def nonzero(numbers: Numbers[_Set]) -> _Set:
    """The places where the number is not 0."""
    result = numbers[0]
    for plane in numbers[1:]:
        result |= plane
    return result


def at_most(numbers: Numbers[_Set], largest: int) -> Numbers[_Set]:
    """The numbers, or `largest`, a power of 2 less 1, where they exceed it."""
    kept = largest.bit_length()
    exceeds = nonzero(numbers[kept:])
    return tuple(plane | exceeds for plane in numbers[:kept])


def increment(numbers: Numbers[_Set], places: _Set) -> Numbers[_Set]:
    """The numbers plus 1 at some places; the largest number wraps to 0."""
    result = []
    for plane in numbers:
        result.append(plane ^ places)
        places = places & plane
    return tuple(result)


def decrement(numbers: Numbers[_Set], places: _Set) -> Numbers[_Set]:
    """The numbers minus 1 at some places, where none may be 0."""
    if len(numbers) > _LONG:
        # A loop: written out, each plane would be computed from all planes below it once more.
        _, less = lax.scan(
            lambda left, plane: (left & ~plane, plane ^ left), places, _stacked(numbers)
        )
        return _unstacked(less)
    result = []
    for plane in numbers:
        result.append(plane ^ places)
        places = places & ~plane
    return tuple(result)


def subtract(numbers: Numbers[_Set], places: _Set, number: jax.Array) -> tuple[Numbers[_Set], _Set]:
    """The numbers minus `number` at some places, and the places where the result is negative.

    There the result wraps: it is the true difference plus 2 to the number of planes.
    """
    result: list[_Set] = []
    borrow = places.only_if(jnp.bool(False))
    for b, plane in enumerate(numbers):
        taken = places.only_if(_bit(number, b))
        result.append(plane ^ taken ^ borrow)
        borrow = (~plane & (taken | borrow)) | (taken & borrow)
    return tuple(result), borrow


def add(a: Numbers[_Set], b: Numbers[_Set]) -> Numbers[_Set]:
    """The sums for each place, with one plane more (both inputs have the same number of planes)."""
    result: list[_Set] = [a[0] ^ b[0]]
    carry = a[0] & b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        half = x ^ y
        result.append(half ^ carry)
        carry = (x & y) | (half & carry)
    result.append(carry)
    return tuple(result)


def total(numbers: Numbers[_Set], places: _Set) -> jax.Array:
    """int32: the sum of the numbers at some places."""
    sizes = [(plane & places).size() << b for b, plane in enumerate(numbers)]
    return sum(sizes[1:], sizes[0])


def largest(numbers: Numbers[_Set], places: _Set) -> jax.Array:
    """int32: the largest number at some places, 0 if there are none."""
    result = jnp.int32(0)
    for b in reversed(range(len(numbers))):
        with_bit = places & numbers[b]
        has_bit = with_bit.any()
        result += has_bit.astype(jnp.int32) << b
        places = bitboard.select(has_bit, with_bit, places)
    return result


def places_of_smallest(numbers: Numbers[_Set], places: _Set) -> _Set:
    """The places among `places` whose number is the smallest."""
    for plane in reversed(numbers):
        without_bit = places & ~plane
        places = bitboard.select(without_bit.any(), without_bit, places)
    return places


def select(places: _Set, yes: Numbers[_Set], no: Numbers[_Set]) -> Numbers[_Set]:
    """The numbers of `yes` at some places, and of `no` at all others."""
    return tuple((a & places) | (b & ~places) for a, b in zip(yes, no, strict=True))


def _stacked(sets: Sequence[_Set]) -> _Set:
    """Several sets as one, whose words have an axis more, the first."""
    return jax.tree.map(lambda *words: jnp.stack(words), *sets)


def _unstacked(sets: _Set) -> Numbers[_Set]:
    """The sets that were stacked."""

    def one(i: int) -> _Set:
        return jax.tree.map(lambda x: lax.index_in_dim(x, i, keepdims=False), sets)

    return tuple(one(i) for i in range(len(jax.tree.leaves(sets)[0])))


def compressed(sets: _Tree, kept: Any) -> _Tree:
    """A tree of sets of slots after removing the slots that are not in `kept` (`Set36.compressed`).

    The words of all sets are one array here, so that they are one operation.
    """
    leaves, tree = jax.tree.flatten(sets, is_leaf=is_set)
    words = _stacked(leaves)

    def compress() -> Any:
        plan = kept.compression()
        return jax.vmap(lambda slots: slots.compressed(plan))(words)

    # If no slot is kept, the zeros of `compute_once` are right.
    result = compute_once(kept.any(), compress)
    return jax.tree.unflatten(tree, _unstacked(result))


def is_set(tree: object) -> bool:
    """Whether this is a set, for functions over trees of sets."""
    return isinstance(tree, Set36 | Set32)


def _bit(number: jax.Array, b: int) -> jax.Array:
    bit = number.dtype.type(1 << b)
    return lax.ne(lax.bitwise_and(number, bit), number.dtype.type(0))


class Coordinates(NamedTuple, Generic[_Set]):
    """The cells of the pieces in a list: row and column, three planes each."""

    row: Numbers[_Set]
    col: Numbers[_Set]

    def at(self, slot: jax.Array) -> jax.Array:
        """int32: the cell of the piece in a slot."""
        return get(self.row, slot) * SIZE + get(self.col, slot)

    def on(self, cell: jax.Array) -> _Set:
        """The slots of the pieces on a cell; slots without a piece count as on cell 0."""
        return self.in_row(row_of(cell)) & self.in_col(col_of(cell))

    def in_row(self, number: jax.Array) -> _Set:
        """The slots of the pieces in a row."""
        return equal(self.row, number)

    def in_col(self, number: jax.Array) -> _Set:
        """The slots of the pieces in a column."""
        return equal(self.col, number)

    def moved(self, places: _Set, cell: jax.Array) -> "Coordinates[_Set]":
        """The coordinates with the pieces in some slots moved to a cell."""
        return Coordinates(put(self.row, places, row_of(cell)), put(self.col, places, col_of(cell)))

    def cells(self, *members: _Set) -> list[Set36]:
        """For each set of slots, the set of cells of their pieces.

        It loops over two rows at a time, one of each half of the board: a third of the code.
        """
        cols = one_hot(self.col, SIZE)

        def look(i: jax.Array, found: list[Set36]) -> list[Set36]:
            low, high = equal(self.row, i), equal(self.row, i + SIZE // 2)
            shift = (i * SIZE).astype(jnp.uint32)
            return [
                cells
                | Set36(
                    _row_bits(low & slots, cols) << shift, _row_bits(high & slots, cols) << shift
                )
                for cells, slots in zip(found, members, strict=True)
            ]

        nowhere = members[0].any().astype(jnp.uint32) & 0  # a zero that varies by game
        return rounds(SIZE // 2, look, [Set36(nowhere, nowhere)] * len(members))

    def within(self, members: _Set, cells: Set36) -> _Set:
        """The members that are on these cells."""
        cols = one_hot(self.col, SIZE)
        none = members ^ members

        def look(i: jax.Array, found: _Set) -> _Set:
            shift = (i * SIZE).astype(jnp.uint32)
            for half, word in enumerate(cells):
                row, there = equal(self.row, i + half * (SIZE // 2)), none
                row_word = word >> shift
                for col, slots in enumerate(cols):
                    there |= slots.only_if(_bit(row_word, col))
                found |= row & there
            return found

        return members & rounds(SIZE // 2, look, none)

    def first_on_each_cell(self, members: _Set) -> _Set:
        """The members that are the first in the list on their cell."""
        cols = one_hot(self.col, SIZE)

        def look(i: jax.Array, found: _Set) -> _Set:
            row = equal(self.row, i) & members
            for slots in cols:
                found |= (row & slots).first()
            return found

        return rounds(SIZE, look, members ^ members)


def _row_bits(row: _Set, cols: list[_Set]) -> jax.Array:
    """uint32: bit c is set if a piece in a row is in column c."""
    word = jnp.uint32(0)
    for col, slots in enumerate(cols):
        word |= where((row & slots).any(), np.uint32(1 << col), 0)
    return word
