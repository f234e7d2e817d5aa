"""Many small numbers side by side: plane b is the set of the places whose number has bit b.

A place is a cell of the board, or a slot of a list (enemies, transmissions). What is done to all
places is then done by a few operations on sets, whatever their number.
"""

from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, Slots, col_of, row_of
from hackmatrix.rules.board import SIZE

_Set = TypeVar("_Set", Bits, Slots)
Planes = tuple[_Set, ...]


def get(planes: Planes[_Set], place: jax.Array) -> jax.Array:
    """int32: the number at a place."""
    bits = [plane.has(place).astype(jnp.int32) << b for b, plane in enumerate(planes)]
    return sum(bits[1:], bits[0])


def put(planes: Planes[_Set], where: _Set, number: jax.Array) -> Planes[_Set]:
    """The numbers with those at some places replaced by one."""
    return tuple((plane & ~where) | where.where(_bit(number, b)) for b, plane in enumerate(planes))


def clear(planes: Planes[_Set], where: _Set) -> Planes[_Set]:
    """The numbers with those at some places set to 0."""
    return tuple(plane & ~where for plane in planes)


def equal(planes: Planes[_Set], number: jax.Array | int) -> _Set:
    """The places with this number."""
    result = _with_bit(planes[0], number, 0)
    for b, plane in enumerate(planes[1:], start=1):
        result &= _with_bit(plane, number, b)
    return result


def _with_bit(plane: _Set, number: jax.Array | int, b: int) -> _Set:
    """The places whose bit b is that of a number."""
    if isinstance(number, int):
        return plane if number >> b & 1 else ~plane
    return ~(plane ^ type(plane).full(_bit(number, b)))


def at_least(planes: Planes[_Set], number: jax.Array) -> _Set:
    """The places whose number is not below this one."""
    kind = type(planes[0])
    result = kind.full(jnp.bool(True))
    for b, plane in enumerate(planes):  # a higher bit decides over the lower ones
        wanted = kind.full(_bit(number, b))
        result = (plane & ~wanted) | (~(plane ^ wanted) & result)
    return result


def decoded(planes: Planes[_Set], count: int) -> list[_Set]:
    """For each number below `count` the places with it."""
    sets: list[_Set] = [~planes[-1], planes[-1]]
    for plane in reversed(planes[:-1]):
        sets = [part & side for part in sets for side in (~plane, plane)]
    return sets[:count]


def less(a: Planes[_Set], b: Planes[_Set]) -> _Set:
    """The places whose number in `a` is below that in `b` (equally many planes)."""
    result = ~a[0] & b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        result = (~x & y) | (~(x ^ y) & result)
    return result


def nonzero(planes: Planes[_Set]) -> _Set:
    """The places whose number is not 0."""
    result = planes[0]
    for plane in planes[1:]:
        result |= plane
    return result


def increased(planes: Planes[_Set], where: _Set) -> Planes[_Set]:
    """The numbers with 1 added at some places; what does not fit is lost."""
    result = []
    for plane in planes:
        result.append(plane ^ where)
        where = where & plane
    return tuple(result)


def decreased(planes: Planes[_Set], where: _Set) -> Planes[_Set]:
    """The numbers with 1 taken away at some places, none of which may be 0."""
    result = []
    for plane in planes:
        result.append(plane ^ where)
        where = where & ~plane
    return tuple(result)


def reduced(planes: Planes[_Set], where: _Set, number: jax.Array) -> tuple[Planes[_Set], _Set]:
    """The numbers with one taken away at some places, and the places where it was too much."""
    result: list[_Set] = []
    borrow = where.where(jnp.bool(False))
    for b, plane in enumerate(planes):
        taken = where.where(_bit(number, b))
        result.append(plane ^ taken ^ borrow)
        borrow = (~plane & (taken | borrow)) | (taken & borrow)
    return tuple(result), borrow


def added(a: Planes[_Set], b: Planes[_Set]) -> Planes[_Set]:
    """The sums, place by place, with one plane more than the numbers (equally many in both)."""
    result: list[_Set] = [a[0] ^ b[0]]
    carry = a[0] & b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        half = x ^ y
        result.append(half ^ carry)
        carry = (x & y) | (half & carry)
    result.append(carry)
    return tuple(result)


def total(planes: Planes[_Set], where: _Set) -> jax.Array:
    """int32: the sum of the numbers at some places."""
    sizes = [(plane & where).size() << b for b, plane in enumerate(planes)]
    return sum(sizes[1:], sizes[0])


def largest(planes: Planes[_Set], where: _Set) -> jax.Array:
    """int32: the largest number at some places, 0 if there are none."""
    result = jnp.int32(0)
    for b in reversed(range(len(planes))):
        with_bit = where & planes[b]
        has_bit = with_bit.any()
        result += has_bit.astype(jnp.int32) << b
        where = bitboard.select(has_bit, with_bit, where)
    return result


def smallest(planes: Planes[_Set], where: _Set) -> _Set:
    """Those of some places that hold the smallest number."""
    for plane in reversed(planes):
        without_bit = where & ~plane
        where = bitboard.select(without_bit.any(), without_bit, where)
    return where


def mixed(where: _Set, yes: Planes[_Set], no: Planes[_Set]) -> Planes[_Set]:
    """The numbers of `yes` at some places, those of `no` at the others."""
    return tuple((a & where) | (b & ~where) for a, b in zip(yes, no, strict=True))


def _bit(number: jax.Array, b: int) -> jax.Array:
    return (number >> b) & 1 == 1


class Spots(NamedTuple, Generic[_Set]):
    """Where the pieces of a list are: row and column of each, three planes apart."""

    row: Planes[_Set]
    col: Planes[_Set]

    def at(self, slot: jax.Array) -> jax.Array:
        """int32: the cell of the piece in a slot."""
        return get(self.row, slot) * SIZE + get(self.col, slot)

    def on(self, cell: jax.Array) -> _Set:
        """The slots of the pieces on a cell (of slots without a piece, anything)."""
        return self.in_row(row_of(cell)) & self.in_col(col_of(cell))

    def in_row(self, number: jax.Array) -> _Set:
        """The slots of the pieces in a row."""
        return equal(self.row, number)

    def in_col(self, number: jax.Array) -> _Set:
        """The slots of the pieces in a column."""
        return equal(self.col, number)

    def moved(self, where: _Set, cell: jax.Array) -> "Spots[_Set]":
        """The pieces with those in some slots brought to a cell."""
        return Spots(put(self.row, where, row_of(cell)), put(self.col, where, col_of(cell)))

    def cells(self, *members: _Set) -> list[Bits]:
        """For each set of slots the cells of their pieces.

        Two rows at a time, one of each half of the board, in a loop: a third of the code.
        """
        cols = decoded(self.col, SIZE)

        def look(i: jax.Array, found: list[Bits]) -> list[Bits]:
            low, high = equal(self.row, i), equal(self.row, i + SIZE // 2)
            shift = (i * SIZE).astype(jnp.uint32)
            return [
                cells
                | Bits(
                    _row_bits(low & slots, cols) << shift, _row_bits(high & slots, cols) << shift
                )
                for cells, slots in zip(found, members, strict=True)
            ]

        nowhere = members[0].any().astype(jnp.uint32) & 0  # a zero of each game
        return lax.fori_loop(0, SIZE // 2, look, [Bits(nowhere, nowhere)] * len(members))

    def within(self, members: _Set, cells: Bits) -> _Set:
        """Those members that are on some cells."""
        cols = decoded(self.col, SIZE)
        none = members ^ members

        def look(i: jax.Array, found: _Set) -> _Set:
            shift = (i * SIZE).astype(jnp.uint32)
            for half, word in enumerate(cells):
                row, there = equal(self.row, i + half * (SIZE // 2)), none
                for col, slots in enumerate(cols):
                    there |= slots.where((word >> shift >> np.uint32(col)) & 1 == 1)
                found |= row & there
            return found

        return members & lax.fori_loop(0, SIZE // 2, look, none)

    def first_of_each(self, members: _Set) -> _Set:
        """Those members that have no member before them in the list on the same cell."""
        cols = decoded(self.col, SIZE)

        def look(i: jax.Array, found: _Set) -> _Set:
            row = equal(self.row, i) & members
            for slots in cols:
                found |= (row & slots).first()
            return found

        return lax.fori_loop(0, SIZE, look, members ^ members)


def _row_bits(row: _Set, cols: list[_Set]) -> jax.Array:
    """uint32: bit c is set if a piece in a row is in column c."""
    word = jnp.uint32(0)
    for col, slots in enumerate(cols):
        word |= (row & slots).any().astype(jnp.uint32) << np.uint32(col)
    return word
