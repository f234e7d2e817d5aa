"""Sets of cells as bits: 36 cells in two uint32, rows 0-2 in `low` and rows 3-5 in `high`.

Cell `c` is bit `c % 18` of its word. All functions work on one board; batches come from `jax.vmap`.
"""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.rules.board import CELLS, SIZE

HALF = CELLS // 2
_WORD = (1 << HALF) - 1


class Bits(NamedTuple):
    """A set of cells: two uint32 scalars."""

    low: jax.Array
    high: jax.Array

    def __and__(self, other: "Bits") -> "Bits":
        return Bits(self.low & other.low, self.high & other.high)

    def __or__(self, other: "Bits") -> "Bits":
        return Bits(self.low | other.low, self.high | other.high)

    def __xor__(self, other: "Bits") -> "Bits":
        return Bits(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> "Bits":
        return Bits(~self.low & np.uint32(_WORD), ~self.high & np.uint32(_WORD))

    def any(self) -> jax.Array:
        """bool: whether the set has a cell."""
        return (self.low | self.high) != 0

    def size(self) -> jax.Array:
        """int32: the number of cells."""
        return (lax.population_count(self.low) + lax.population_count(self.high)).astype(jnp.int32)

    def has(self, cell: jax.Array) -> jax.Array:
        """Bool of the shape of `cell`: whether it is in the set."""
        word = jnp.where(cell < HALF, self.low, self.high)
        shift = jnp.where(cell < HALF, cell, cell - HALF).astype(jnp.uint32)
        return (word >> shift) & 1 != 0

    def where(self, condition: jax.Array) -> "Bits":
        """This set if the condition holds, else the empty set."""
        return select(condition, self, EMPTY)


def constant(cells: Iterable[int]) -> Bits:
    """A set known at compile time (NumPy scalars)."""
    bits = sum(1 << cell for cell in set(cells))
    return Bits(np.uint32(bits & _WORD), np.uint32(bits >> HALF))  # type: ignore[arg-type]


EMPTY = constant(())
FULL = constant(range(CELLS))
NOT_LEFT = constant(cell for cell in range(CELLS) if cell % SIZE != 0)
NOT_RIGHT = constant(cell for cell in range(CELLS) if cell % SIZE != SIZE - 1)


def select(condition: jax.Array, yes: Bits, no: Bits) -> Bits:
    """One of two sets."""
    return Bits(jnp.where(condition, yes.low, no.low), jnp.where(condition, yes.high, no.high))


def of_cell(cell: jax.Array) -> Bits:
    """The set of one cell; empty for a cell outside 0..35."""
    one = jnp.uint32(1)
    in_low = (cell >= 0) & (cell < HALF)
    in_high = (cell >= HALF) & (cell < CELLS)
    return Bits(
        jnp.where(in_low, one << cell.astype(jnp.uint32), 0).astype(jnp.uint32),
        jnp.where(in_high, one << (cell - HALF).astype(jnp.uint32), 0).astype(jnp.uint32),
    )


def of_cells(cells: jax.Array, members: jax.Array) -> Bits:
    """The set of those `cells` (int[n]) whose `members` (bool[n]) is true."""
    bits = of_cell(jnp.where(members, cells.astype(jnp.int32), -1))
    return Bits(*(lax.reduce(word, np.uint32(0), lax.bitwise_or, (0,)) for word in bits))


def of_mask(mask: jax.Array) -> Bits:
    """The set of the places where a bool[n] is true, n at most 36."""
    bits = mask.astype(jnp.uint32) << (np.arange(mask.shape[0], dtype=np.uint32) % HALF)
    return Bits(jnp.sum(bits[:HALF], dtype=jnp.uint32), jnp.sum(bits[HALF:], dtype=jnp.uint32))


def to_mask(bits: Bits) -> jax.Array:
    """bool[36]: the set, cell by cell."""
    shifts = jnp.asarray(np.arange(HALF), jnp.uint32)
    return jnp.concatenate([(bits.low >> shifts) & 1, (bits.high >> shifts) & 1]) != 0


# Neighbours in the four directions: the set moved by one cell, what leaves the board is lost.


def up(bits: Bits) -> Bits:
    """Row + 1."""
    low = (bits.low << SIZE) & np.uint32(_WORD)
    high = ((bits.high << SIZE) | (bits.low >> (HALF - SIZE))) & np.uint32(_WORD)
    return Bits(low, high)


def down(bits: Bits) -> Bits:
    """Row - 1."""
    low = ((bits.low >> SIZE) | (bits.high << (HALF - SIZE))) & np.uint32(_WORD)
    return Bits(low, bits.high >> SIZE)


def left(bits: Bits) -> Bits:
    """Col - 1."""
    kept = bits & NOT_LEFT
    return Bits(kept.low >> 1, kept.high >> 1)


def right(bits: Bits) -> Bits:
    """Col + 1."""
    kept = bits & NOT_RIGHT
    return Bits(kept.low << 1, kept.high << 1)


DIRECTIONS = (up, down, left, right)


def neighbours(bits: Bits) -> Bits:
    """All cells next to the set (cells of the set among them where they touch)."""
    return up(bits) | down(bits) | left(bits) | right(bits)


def cross(bits: Bits) -> Bits:
    """The set and its neighbours."""
    return bits | neighbours(bits)


def around(bits: Bits) -> Bits:
    """The up to 8 cells around one cell."""
    row = bits | left(bits) | right(bits)
    return (row | up(row) | down(row)) & ~bits


def lowest(bits: Bits) -> jax.Array:
    """int32: the smallest cell of a set that is not empty."""
    return jnp.where(bits.low != 0, _trailing_zeros(bits.low), HALF + _trailing_zeros(bits.high))


def highest(bits: Bits) -> jax.Array:
    """int32: the largest cell of a set that is not empty."""
    last = 31 - lax.clz(jnp.where(bits.high != 0, bits.high, bits.low)).astype(jnp.int32)
    return jnp.where(bits.high != 0, HALF + last, last)


def _trailing_zeros(word: jax.Array) -> jax.Array:
    lowest_bit = word & (jnp.uint32(0) - word)
    return lax.population_count(lowest_bit - jnp.uint32(1)).astype(jnp.int32)


def nth(bits: Bits, n: jax.Array) -> jax.Array:
    """int32: the n-th cell of the set in ascending order, n from 0 to count - 1."""
    in_low = lax.population_count(bits.low).astype(jnp.int32)
    word = jnp.where(n < in_low, bits.low, bits.high)
    place = nth_bit(word, jnp.where(n < in_low, n, n - in_low))
    return jnp.where(n < in_low, place, HALF + place)


def nth_bit(word: jax.Array, n: jax.Array) -> jax.Array:
    """int32: the place of the n-th set bit of a uint32, n from 0 to its count - 1."""
    place = jnp.zeros_like(n)
    for width in (16, 8, 4, 2, 1):
        part = (word >> place.astype(jnp.uint32)) & jnp.uint32((1 << width) - 1)
        below = lax.population_count(part).astype(jnp.int32)
        skip = n >= below
        n = jnp.where(skip, n - below, n)
        place = jnp.where(skip, place + width, place)
    return place
