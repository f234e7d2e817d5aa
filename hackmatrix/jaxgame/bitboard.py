"""Sets as bits: cells of the board, and slots of a list.

`Bits` holds 36 places in two uint32, places 0-17 in `low` and 18-35 in `high`; `Slots` holds 32
places in one. All functions work on one game; batches come from `jax.vmap`, and as every set is a
few scalars, a batch of games is a vector that the machine works on eight or more games at a time.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.rules.board import CELLS, SIZE

HALF = CELLS // 2

# Words known at compile time: NumPy scalars.
_WORD: Any = np.uint32((1 << HALF) - 1)
_EVERY: Any = np.uint32(0xFFFFFFFF)
_ZERO: Any = np.uint32(0)
_ONE: Any = np.uint32(1)
_ROW: Any = np.uint32(SIZE)
_ROWS: Any = np.uint32(HALF - SIZE)
_HALF: Any = np.uint32(HALF)
_DISTANCES: Any = tuple(np.uint32(1 << i) for i in range(5))


class Bits(NamedTuple):
    """A set of cells, or of slots of a list of up to 36: two uint32 scalars."""

    low: jax.Array
    high: jax.Array

    def __and__(self, other: "Bits") -> "Bits":
        return Bits(_and(self.low, other.low), _and(self.high, other.high))

    def __or__(self, other: "Bits") -> "Bits":
        return Bits(_or(self.low, other.low), _or(self.high, other.high))

    def __xor__(self, other: "Bits") -> "Bits":
        return Bits(_xor(self.low, other.low), _xor(self.high, other.high))

    def __invert__(self) -> "Bits":
        return Bits(_xor(self.low, _WORD), _xor(self.high, _WORD))

    def any(self) -> jax.Array:
        """bool: whether the set has a place."""
        return lax.ne(_or(self.low, self.high), _ZERO)

    def size(self) -> jax.Array:
        """int32: the number of places."""
        return _count(self.low) + _count(self.high)

    def has(self, place: jax.Array) -> jax.Array:
        """bool: whether a place 0..35 is in the set."""
        in_low = place < HALF
        word = _if(in_low, self.low, self.high)
        return _bit(word, _if(in_low, place, place - HALF))

    def where(self, condition: jax.Array) -> "Bits":
        """This set if the condition holds, else the empty set."""
        return Bits(_if(condition, self.low, _ZERO), _if(condition, self.high, _ZERO))

    def first(self) -> "Bits":
        """The set of its lowest place alone; empty if it is empty."""
        return Bits(_lowest_bit(self.low), _if(self.low == _ZERO, _lowest_bit(self.high), _ZERO))

    def gaps(self) -> "Gaps":
        """How to close the gaps between its places."""
        return Gaps(_moves(self.low), _moves(self.high), _unsigned(_count(self.low)))

    def squeezed(self, gaps: "Gaps") -> "Bits":
        """Its places that are in the set of the gaps, the n-th of that set's moved to place n."""
        low, high = _squeezed(self.low, gaps.low), _squeezed(self.high, gaps.high)
        first = _and(_or(low, _shift_left(high, gaps.kept_low)), _WORD)
        return Bits(first, _shift_right(high, _HALF - gaps.kept_low))

    def to_slots(self) -> "Slots":
        """Its first 32 places."""
        return Slots(_or(self.low, _shift_left(self.high, _HALF)))

    @staticmethod
    def full(condition: jax.Array) -> "Bits":
        """All 36 places if the condition holds, else none."""
        word = _if(condition, _WORD, _ZERO)
        return Bits(word, word)

    @staticmethod
    def below(place: jax.Array) -> "Bits":
        """The places before one of 0..36."""
        low, high = lax.min(place, np.int32(HALF)), lax.max(place - HALF, np.int32(0))
        return Bits(_bit_at(low) - _ONE, _bit_at(high) - _ONE)


class Slots(NamedTuple):
    """A set of slots of a list of up to 32: one uint32 scalar."""

    bits: jax.Array

    def __and__(self, other: "Slots") -> "Slots":
        return Slots(_and(self.bits, other.bits))

    def __or__(self, other: "Slots") -> "Slots":
        return Slots(_or(self.bits, other.bits))

    def __xor__(self, other: "Slots") -> "Slots":
        return Slots(_xor(self.bits, other.bits))

    def __invert__(self) -> "Slots":
        return Slots(_xor(self.bits, _EVERY))

    def any(self) -> jax.Array:
        """bool: whether the set has a place."""
        return lax.ne(self.bits, _ZERO)

    def size(self) -> jax.Array:
        """int32: the number of places."""
        return _count(self.bits)

    def has(self, place: jax.Array) -> jax.Array:
        """bool: whether a place 0..31 is in the set."""
        return _bit(self.bits, place)

    def where(self, condition: jax.Array) -> "Slots":
        """This set if the condition holds, else the empty set."""
        return Slots(_if(condition, self.bits, _ZERO))

    def first(self) -> "Slots":
        """The set of its lowest place alone; empty if it is empty."""
        return Slots(_lowest_bit(self.bits))

    def gaps(self) -> "_Moves":
        """As `Bits.gaps`."""
        return _moves(self.bits)

    def squeezed(self, gaps: "_Moves") -> "Slots":
        """As `Bits.squeezed`."""
        return Slots(_squeezed(self.bits, gaps))

    def shifted(self, places: jax.Array) -> "Slots":
        """Each place moved up by so many."""
        return Slots(_shift_left(self.bits, _unsigned(places)))

    @staticmethod
    def full(condition: jax.Array) -> "Slots":
        """All 32 places if the condition holds, else none."""
        return Slots(_if(condition, _EVERY, _ZERO))

    @staticmethod
    def below(place: jax.Array) -> "Slots":
        """The places before one of 0..32."""
        return Slots(_bit_at(place) - _ONE)

    @staticmethod
    def only(place: jax.Array) -> "Slots":
        """The set of one place, 0..31."""
        return Slots(_bit_at(place))


_Set = TypeVar("_Set", Bits, Slots)


# Words by `lax` rather than operators: a step is made of thousands of these, and each operator of
# `jnp` takes several times as long to trace.


def _and(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_and(a, b)


def _or(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_or(a, b)


def _xor(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_xor(a, b)


def _shift_left(word: jax.Array, places: jax.Array) -> jax.Array:
    return lax.shift_left(word, places)


def _shift_right(word: jax.Array, places: jax.Array) -> jax.Array:
    return lax.shift_right_logical(word, places)


def _if(condition: jax.Array, yes: jax.Array, no: jax.Array) -> jax.Array:
    return lax.select(condition, jnp.asarray(yes), jnp.asarray(no))


def _bit(word: jax.Array, place: jax.Array) -> jax.Array:
    return lax.ne(_and(_shift_right(word, _unsigned(place)), _ONE), _ZERO)


def _bit_at(place: jax.Array) -> jax.Array:
    return _shift_left(_ONE, _unsigned(place))


def _unsigned(number: jax.Array) -> jax.Array:
    return lax.convert_element_type(number, np.uint32)


def _count(word: jax.Array) -> jax.Array:
    return lax.convert_element_type(lax.population_count(word), np.int32)


def _lowest_bit(word: jax.Array) -> jax.Array:
    return _and(word, lax.neg(word))


class _Moves(NamedTuple):
    """How the bits of a word that are kept come to its low end: kept; those to move by 1, 2, 4.."""

    kept: jax.Array
    moves: tuple[jax.Array, ...]


class Gaps(NamedTuple):
    """The same for the two words of a set, and how many places the lower one keeps."""

    low: _Moves
    high: _Moves
    kept_low: jax.Array


def _moves(kept: jax.Array) -> _Moves:
    """Each bit moves by as many places as there are gaps below it, one power of two at a time.

    Warren, Hacker's Delight, 2nd edition, section 7-4, "compress".
    """
    all_kept, moves = kept, []
    gaps = _shift_left(_xor(kept, _EVERY), _ONE)
    for distance in _DISTANCES:
        odd = gaps  # bits with an odd number of gaps below
        for width in _DISTANCES:
            odd = _xor(odd, _shift_left(odd, width))
        move = _and(odd, kept)
        moves.append(move)
        kept = _or(_xor(kept, move), _shift_right(move, distance))
        gaps = _and(gaps, _xor(odd, _EVERY))
    return _Moves(all_kept, tuple(moves))


def _squeezed(word: jax.Array, moves: _Moves) -> jax.Array:
    word = _and(word, moves.kept)
    for move, distance in zip(moves.moves, _DISTANCES, strict=True):
        moving = _and(word, move)
        word = _or(_xor(word, moving), _shift_right(moving, distance))
    return word


def constant(cells: Iterable[int]) -> Bits:
    """A set known at compile time (NumPy scalars)."""
    bits = sum(1 << cell for cell in set(cells))
    return Bits(np.uint32(bits & int(_WORD)), np.uint32(bits >> HALF))  # type: ignore[arg-type]


EMPTY = constant(())
FULL = constant(range(CELLS))
NOT_LEFT = constant(cell for cell in range(CELLS) if cell % SIZE != 0)
NOT_RIGHT = constant(cell for cell in range(CELLS) if cell % SIZE != SIZE - 1)
_FIRST_ROW, _FIRST_COL = constant(range(SIZE)), constant(range(0, CELLS, SIZE))


def select(condition: jax.Array, yes: _Set, no: _Set) -> _Set:
    """One of two sets."""
    return type(yes)(*(_if(condition, a, b) for a, b in zip(yes, no, strict=True)))


def row_of(cell: jax.Array) -> jax.Array:
    """int32: the row of cells 0..35."""
    return (cell * 43) >> 8


def col_of(cell: jax.Array) -> jax.Array:
    """int32: the column of cells 0..35."""
    return cell - SIZE * row_of(cell)


def of_cell(cell: jax.Array) -> Bits:
    """The set of one cell; empty for a cell outside 0..35."""
    in_low = (cell >= 0) & (cell < HALF)
    in_high = (cell >= HALF) & (cell < CELLS)
    return Bits(_if(in_low, _bit_at(cell), _ZERO), _if(in_high, _bit_at(cell - HALF), _ZERO))


def of_mask(mask: jax.Array) -> Bits:
    """The set of the cells where a bool[36] is true."""
    bits = mask.astype(jnp.uint32) << (np.arange(CELLS, dtype=np.uint32) % HALF)
    return Bits(jnp.sum(bits[:HALF], dtype=jnp.uint32), jnp.sum(bits[HALF:], dtype=jnp.uint32))


def row(number: jax.Array) -> Bits:
    """The cells of a row 0..5."""
    upper = number >= SIZE // 2
    shift = _unsigned(SIZE * jnp.where(upper, number - SIZE // 2, number))
    cells = _FIRST_ROW.low << shift
    return Bits(jnp.where(upper, 0, cells), jnp.where(upper, cells, 0))


def col(number: jax.Array) -> Bits:
    """The cells of a column 0..5."""
    return Bits(_FIRST_COL.low << _unsigned(number), _FIRST_COL.high << _unsigned(number))


# Neighbours in the four directions: the set moved by one cell, what leaves the board is lost.


def up(bits: Bits) -> Bits:
    """Row + 1."""
    above = _or(_shift_left(bits.high, _ROW), _shift_right(bits.low, _ROWS))
    return Bits(_and(_shift_left(bits.low, _ROW), _WORD), _and(above, _WORD))


def down(bits: Bits) -> Bits:
    """Row - 1."""
    below = _or(_shift_right(bits.low, _ROW), _shift_left(bits.high, _ROWS))
    return Bits(_and(below, _WORD), _shift_right(bits.high, _ROW))


def left(bits: Bits) -> Bits:
    """Col - 1."""
    kept = bits & NOT_LEFT
    return Bits(_shift_right(kept.low, _ONE), _shift_right(kept.high, _ONE))


def right(bits: Bits) -> Bits:
    """Col + 1."""
    kept = bits & NOT_RIGHT
    return Bits(_shift_left(kept.low, _ONE), _shift_left(kept.high, _ONE))


DIRECTIONS = (up, down, left, right)


def neighbours(bits: Bits) -> Bits:
    """All cells next to the set (cells of the set among them where they touch)."""
    return up(bits) | down(bits) | left(bits) | right(bits)


def cross(bits: Bits) -> Bits:
    """The set and its neighbours."""
    return bits | neighbours(bits)


def around(bits: Bits) -> Bits:
    """The up to 8 cells around one cell."""
    line = bits | left(bits) | right(bits)
    return (line | up(line) | down(line)) & ~bits


def grown(bits: Bits, free: Bits) -> Bits:
    """The set and those of its neighbours that are free: one round of a flood."""
    return bits | (neighbours(bits) & free)


def ray(cell: jax.Array, direction: Callable[[Bits], Bits]) -> Bits:
    """The cells from the neighbour in a direction (one of `DIRECTIONS`) on to the edge."""
    line = row(row_of(cell)) if direction in (left, right) else col(col_of(cell))
    before = Bits.below(cell)
    return line & before if direction in (left, down) else line & ~(before | of_cell(cell))


def up_to_first(cells: Bits, stops: Bits, direction: Callable[[Bits], Bits]) -> Bits:
    """The cells of a ray as far as the first stop on it, that one included."""
    met = cells & stops
    if direction in (up, right):
        low = _xor(met.low, met.low - _ONE)  # everything where there is no stop
        high = _xor(met.high, met.high - _ONE)
        return cells & Bits(low, _if(lax.eq(met.low, _ZERO), high, _ZERO))
    low, high = (_not_below_highest(word) for word in met)
    return cells & Bits(_if(lax.eq(met.high, _ZERO), low, _ZERO), high)


def _not_below_highest(word: jax.Array) -> jax.Array:
    """The bits from the highest one of a word on, all if it has none."""
    below = lax.shift_right_logical(_EVERY, lax.clz(word))  # the highest bit and those below it
    return _xor(lax.shift_right_logical(below, _ONE), _EVERY)


def lowest(bits: Bits) -> jax.Array:
    """int32: the smallest cell of a set that is not empty."""
    return jnp.where(bits.low != 0, _trailing_zeros(bits.low), HALF + _trailing_zeros(bits.high))


def highest(bits: Bits) -> jax.Array:
    """int32: the largest cell of a set that is not empty."""
    last = 31 - lax.clz(jnp.where(bits.high != 0, bits.high, bits.low)).astype(jnp.int32)
    return jnp.where(bits.high != 0, HALF + last, last)


def _trailing_zeros(word: jax.Array) -> jax.Array:
    return _count(_lowest_bit(word) - _ONE)


def nth(bits: Bits, n: jax.Array) -> jax.Array:
    """int32: the n-th cell of the set in ascending order, n from 0 to count - 1."""
    in_low = _count(bits.low)
    is_low = n < in_low
    place = nth_bit(jnp.where(is_low, bits.low, bits.high), jnp.where(is_low, n, n - in_low))
    return jnp.where(is_low, place, HALF + place)


def nth_bit(word: jax.Array, n: jax.Array) -> jax.Array:
    """int32: the place of the n-th set bit of a uint32, n from 0 to its count - 1."""
    place = jnp.zeros_like(n)
    for width in (16, 8, 4, 2, 1):
        part = (word >> _unsigned(place)) & np.uint32((1 << width) - 1)
        below = _count(part)
        skip = n >= below
        n = jnp.where(skip, n - below, n)
        place = jnp.where(skip, place + width, place)
    return place
