"""Sets as bits: which cells of the board, which slots of a list of pieces.

An index is that of a cell or of a slot. `Set36` holds the indices 0..35 in two uint32, 0-17 in
`low` and 18-35 in `high`; `Set32` holds the indices 0..31 in one uint32. Bit i of a word stands for
its index i. Sets are combined by `&`, `|`, `^` and `~`, and moved over the board by shifts.

Every word may be an array with an element for each game (`control_flow.py`). As a set is one or two
words, many games are vectors of words, and the machine works on eight or more games at a time.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.game.jaxgame.control_flow import where
from hackmatrix.game.rules.board import CELLS, SIZE

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


class Set36(NamedTuple):
    """A set of indices 0..35: two uint32 scalars of 18 bits."""

    low: jax.Array
    high: jax.Array

    def __and__(self, other: "Set36") -> "Set36":
        return Set36(_and(self.low, other.low), _and(self.high, other.high))

    def __or__(self, other: "Set36") -> "Set36":
        return Set36(_or(self.low, other.low), _or(self.high, other.high))

    def __xor__(self, other: "Set36") -> "Set36":
        return Set36(_xor(self.low, other.low), _xor(self.high, other.high))

    def __invert__(self) -> "Set36":
        return Set36(_xor(self.low, _WORD), _xor(self.high, _WORD))

    def any(self) -> jax.Array:
        """bool: whether the set is not empty."""
        return lax.ne(_or(self.low, self.high), _ZERO)

    def size(self) -> jax.Array:
        """int32: the number of members."""
        return _count(self.low) + _count(self.high)

    def has(self, index: jax.Array) -> jax.Array:
        """bool: whether an index 0..35 is in the set."""
        in_low = index < HALF
        word = where(in_low, self.low, self.high)
        return _bit(word, where(in_low, index, index - HALF))

    def only_if(self, condition: jax.Array) -> "Set36":
        """This set if the condition holds, else the empty set."""
        return Set36(where(condition, self.low, _ZERO), where(condition, self.high, _ZERO))

    def first(self) -> "Set36":
        """The set of its lowest member only; the empty set if it is empty."""
        return Set36(_lowest_bit(self.low), where(self.low == _ZERO, _lowest_bit(self.high), _ZERO))

    def compression(self) -> "Compression":
        """The plan by which `compress` moves the indices of this set to the front, in order."""
        return Compression(_moves(self.low), _moves(self.high), _unsigned(_count(self.low)))

    def compress(self, kept: "Compression") -> "Set36":
        """This set after removing all members that are not in the kept set.

        The n-th member of the kept set becomes index n, as with `itertools.compress`.
        """
        low, high = _compress(self.low, kept.low), _compress(self.high, kept.high)
        first = _and(_or(low, _shift_left(high, kept.size_low)), _WORD)
        return Set36(first, _shift_right(high, _HALF - kept.size_low))

    def to_set32(self) -> "Set32":
        """Its indices below 32, as a set of 32."""
        return Set32(_or(self.low, _shift_left(self.high, _HALF)))

    @staticmethod
    def all_if(condition: jax.Array) -> "Set36":
        """All 36 indices if the condition holds, else none."""
        word = where(condition, _WORD, _ZERO)
        return Set36(word, word)

    @staticmethod
    def below(index: jax.Array) -> "Set36":
        """All indices less than `index`, which is 0..36."""
        low, high = lax.min(index, np.int32(HALF)), lax.max(index - HALF, np.int32(0))
        return Set36(_bit_at(low) - _ONE, _bit_at(high) - _ONE)


class Set32(NamedTuple):
    """A set of indices 0..31: one uint32 scalar."""

    word: jax.Array

    def __and__(self, other: "Set32") -> "Set32":
        return Set32(_and(self.word, other.word))

    def __or__(self, other: "Set32") -> "Set32":
        return Set32(_or(self.word, other.word))

    def __xor__(self, other: "Set32") -> "Set32":
        return Set32(_xor(self.word, other.word))

    def __invert__(self) -> "Set32":
        return Set32(_xor(self.word, _EVERY))

    def any(self) -> jax.Array:
        """bool: whether the set is not empty."""
        return lax.ne(self.word, _ZERO)

    def size(self) -> jax.Array:
        """int32: the number of members."""
        return _count(self.word)

    def has(self, index: jax.Array) -> jax.Array:
        """bool: whether an index 0..31 is in the set."""
        return _bit(self.word, index)

    def only_if(self, condition: jax.Array) -> "Set32":
        """This set if the condition holds, else the empty set."""
        return Set32(where(condition, self.word, _ZERO))

    def first(self) -> "Set32":
        """The set of its lowest member only; the empty set if it is empty."""
        return Set32(_lowest_bit(self.word))

    def compression(self) -> "_WordCompression":
        """See `Set36.compression`."""
        return _moves(self.word)

    def compress(self, kept: "_WordCompression") -> "Set32":
        """See `Set36.compress`."""
        return Set32(_compress(self.word, kept))

    def shifted(self, distance: jax.Array) -> "Set32":
        """All indices moved up by a distance 0..31; indices beyond 31 are dropped."""
        return Set32(_shift_left(self.word, _unsigned(distance)))

    @staticmethod
    def all_if(condition: jax.Array) -> "Set32":
        """All 32 indices if the condition holds, else none."""
        return Set32(where(condition, _EVERY, _ZERO))

    @staticmethod
    def below(index: jax.Array) -> "Set32":
        """All indices less than `index`, which is 0..32."""
        return Set32(_bit_at(index) - _ONE)

    @staticmethod
    def of_slot(index: jax.Array) -> "Set32":
        """The set of one index, 0..31."""
        return Set32(_bit_at(index))


# The element types of the game's sets.
CellSet = Set36  # cells of the board
TransmissionSet = Set36  # slots in the list of transmissions, at most one to a cell
EnemySet = Set32  # slots in the list of enemies, at most 32

_Set = TypeVar("_Set", Set36, Set32)


# `lax` functions instead of operators: a step consists of thousands of these, and each operator of
# `jnp` takes several times as long to trace.


def _and(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_and(a, b)


def _or(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_or(a, b)


def _xor(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_xor(a, b)


def _shift_left(word: jax.Array, distance: jax.Array) -> jax.Array:
    return lax.shift_left(word, distance)


def _shift_right(word: jax.Array, distance: jax.Array) -> jax.Array:
    return lax.shift_right_logical(word, distance)


def _bit(word: jax.Array, index: jax.Array) -> jax.Array:
    return lax.ne(_and(_shift_right(word, _unsigned(index)), _ONE), _ZERO)


def _bit_at(index: jax.Array) -> jax.Array:
    return _shift_left(_ONE, _unsigned(index))


def _unsigned(value: jax.Array) -> jax.Array:
    return lax.convert_element_type(value, np.uint32)


def _count(word: jax.Array) -> jax.Array:
    return lax.convert_element_type(lax.population_count(word), np.int32)


def _lowest_bit(word: jax.Array) -> jax.Array:
    return _and(word, lax.neg(word))


class _WordCompression(NamedTuple):
    """The bits of a word that are kept, and which of them move down by 1, 2, 4, 8 and 16."""

    kept: jax.Array
    moves: tuple[jax.Array, ...]


class Compression(NamedTuple):
    """The compression of the two words of a `Set36`."""

    low: _WordCompression
    high: _WordCompression
    size_low: jax.Array  # uint32, indices kept in the lower word


def _moves(kept: jax.Array) -> _WordCompression:
    """Moves each bit down by the number of gaps below it, one power of two at a time.

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
    return _WordCompression(all_kept, tuple(moves))


def _compress(word: jax.Array, moves: _WordCompression) -> jax.Array:
    word = _and(word, moves.kept)
    for move, distance in zip(moves.moves, _DISTANCES, strict=True):
        moving = _and(word, move)
        word = _or(_xor(word, moving), _shift_right(moving, distance))
    return word


def constant(indices: Iterable[int]) -> Set36:
    """A set known at compile time (NumPy scalars)."""
    bits = sum(1 << index for index in set(indices))
    return Set36(np.uint32(bits & int(_WORD)), np.uint32(bits >> HALF))  # type: ignore[arg-type]


NOWHERE = constant(())
EVERYWHERE = constant(range(CELLS))
NOBODY = EnemySet(np.uint32(0))  # type: ignore[arg-type]
_NOT_FIRST_COL = constant(cell for cell in range(CELLS) if cell % SIZE != 0)
_NOT_LAST_COL = constant(cell for cell in range(CELLS) if cell % SIZE != SIZE - 1)
_FIRST_ROW, _FIRST_COL = constant(range(SIZE)), constant(range(0, CELLS, SIZE))


def select(condition: jax.Array, yes: _Set, no: _Set) -> _Set:
    """Selects one of two sets by a bool."""
    return type(yes)(*(where(condition, a, b) for a, b in zip(yes, no, strict=True)))


def row_of(cell: jax.Array) -> jax.Array:
    """int32: the row of cells 0..35."""
    return (cell * 43) >> 8


def col_of(cell: jax.Array) -> jax.Array:
    """int32: the column of cells 0..35."""
    return cell - SIZE * row_of(cell)


def of_cell(cell: jax.Array) -> CellSet:
    """The set of one cell; empty for a cell outside 0..35."""
    low = _unsigned(cell)
    high = lax.sub(low, _HALF)
    # A shift by more than 31 bits gives 0, and so does one by less than 0, which is more than 31.
    return CellSet(
        _and(_shift_left(_ONE, low), _WORD),
        _and(_shift_left(_ONE, high), _WORD),
    )


def of_mask(mask: jax.Array) -> CellSet:
    """The set of the cells where a bool[36, ...] is true."""
    indices = lax.broadcasted_iota(jnp.uint32, (HALF, *mask.shape[1:]), 0)
    halves = (mask[:HALF].astype(jnp.uint32), mask[HALF:].astype(jnp.uint32))
    return CellSet(*(jnp.sum(half << indices, axis=0, dtype=jnp.uint32) for half in halves))


def row_cells(row: jax.Array) -> CellSet:
    """The cells of a row 0..5."""
    upper = row >= SIZE // 2
    shift = _unsigned(SIZE * where(upper, row - SIZE // 2, row))
    cells = _FIRST_ROW.low << shift
    return CellSet(where(upper, 0, cells), where(upper, cells, 0))


def col_cells(col: jax.Array) -> CellSet:
    """The cells of a column 0..5."""
    return CellSet(_FIRST_COL.low << _unsigned(col), _FIRST_COL.high << _unsigned(col))


# These move all cells of a set by one; cells that would leave the board are dropped.


def up(cells: CellSet) -> CellSet:
    """Moves all cells one row up."""
    above = _or(_shift_left(cells.high, _ROW), _shift_right(cells.low, _ROWS))
    return CellSet(_and(_shift_left(cells.low, _ROW), _WORD), _and(above, _WORD))


def down(cells: CellSet) -> CellSet:
    """Moves all cells one row down."""
    below = _or(_shift_right(cells.low, _ROW), _shift_left(cells.high, _ROWS))
    return CellSet(_and(below, _WORD), _shift_right(cells.high, _ROW))


def left(cells: CellSet) -> CellSet:
    """Moves all cells one column to the left."""
    kept = cells & _NOT_FIRST_COL
    return CellSet(_shift_right(kept.low, _ONE), _shift_right(kept.high, _ONE))


def right(cells: CellSet) -> CellSet:
    """Moves all cells one column to the right."""
    kept = cells & _NOT_LAST_COL
    return CellSet(_shift_left(kept.low, _ONE), _shift_left(kept.high, _ONE))


DIRECTIONS = (up, down, left, right)


def neighbours(cells: CellSet) -> CellSet:
    """All cells adjacent to a cell of the set (including cells of the set that are adjacent)."""
    return up(cells) | down(cells) | left(cells) | right(cells)


def cross(cells: CellSet) -> CellSet:
    """The set and its neighbours, the cells that siphoning affects."""
    return cells | neighbours(cells)


def around(cells: CellSet) -> CellSet:
    """The up to 8 cells around one cell, diagonals included."""
    line = cells | left(cells) | right(cells)
    return (line | up(line) | down(line)) & ~cells


def flood_step(cells: CellSet, free: CellSet) -> CellSet:
    """The set and its free neighbours: one round of a flood fill."""
    return cells | (neighbours(cells) & free)


def ray(cell: jax.Array, direction: Callable[[CellSet], CellSet]) -> CellSet:
    """The cells from the neighbour in a direction (one of `DIRECTIONS`) to the edge."""
    line = row_cells(row_of(cell)) if direction in (left, right) else col_cells(col_of(cell))
    before = CellSet.below(cell)
    return line & before if direction in (left, down) else line & ~(before | of_cell(cell))


def up_to_first(cells: CellSet, stops: CellSet, direction: Callable[[CellSet], CellSet]) -> CellSet:
    """The cells of a ray up to and including its first stop."""
    met = cells & stops
    if direction in (up, right):
        low = _xor(met.low, met.low - _ONE)  # all bits set if there is no stop
        high = _xor(met.high, met.high - _ONE)
        return cells & CellSet(low, where(lax.eq(met.low, _ZERO), high, _ZERO))
    low, high = (_not_below_highest(word) for word in met)
    return cells & CellSet(where(lax.eq(met.high, _ZERO), low, _ZERO), high)


def _not_below_highest(word: jax.Array) -> jax.Array:
    """The highest set bit and all bits above it; all bits for 0."""
    below = lax.shift_right_logical(_EVERY, lax.clz(word))  # the highest bit and those below it
    return _xor(lax.shift_right_logical(below, _ONE), _EVERY)


def lowest(cells: CellSet) -> jax.Array:
    """int32: the smallest cell of a set that is not empty."""
    return where(cells.low != 0, _trailing_zeros(cells.low), HALF + _trailing_zeros(cells.high))


def highest(cells: CellSet) -> jax.Array:
    """int32: the largest cell of a set that is not empty."""
    last = 31 - lax.clz(where(cells.high != 0, cells.high, cells.low)).astype(jnp.int32)
    return where(cells.high != 0, HALF + last, last)


def _trailing_zeros(word: jax.Array) -> jax.Array:
    return _count(_lowest_bit(word) - _ONE)


def nth(cells: CellSet, n: jax.Array) -> jax.Array:
    """int32: the n-th cell of the set in ascending order, n from 0 to count - 1."""
    in_low = _count(cells.low)
    is_low = n < in_low
    index = nth_bit(where(is_low, cells.low, cells.high), where(is_low, n, n - in_low))
    return where(is_low, index, HALF + index)


def nth_bit(word: jax.Array, n: jax.Array) -> jax.Array:
    """int32: the index of the n-th set bit of a uint32, n from 0 to its count - 1."""
    index = jnp.zeros_like(n)
    for width in (16, 8, 4, 2, 1):
        part = (word >> _unsigned(index)) & np.uint32((1 << width) - 1)
        below = _count(part)
        skip = n >= below
        n = where(skip, n - below, n)
        index = where(skip, index + width, index)
    return index
