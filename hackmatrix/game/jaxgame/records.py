"""Reads compact records as numbers and sets of cells."""

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import CellSet
from hackmatrix.game.jaxgame.planes import BitPlanes
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import FIELD, PLANE, CellBytes, number_of


class Records:
    """N compact records: numbers of the games, and fields of the cells as sets."""

    def __init__(self, records: jax.Array) -> None:
        columns = records.T
        self._records = records
        self._bytes = CellBytes(*(columns[start : start + CELLS] for start in PLANE.values()))

    def scalar(self, name: str) -> jax.Array:
        """int32[N]."""
        scalar: jax.Array = number_of(self._records, name)
        return scalar

    def flag(self, name: str) -> jax.Array:
        """bool[N]."""
        return self.scalar(name) & 1 == 1

    def planes(self, name: str) -> BitPlanes[CellSet]:
        """A field of the cells, a set for each of its bits."""
        field = FIELD[name]
        byte = getattr(self._bytes, field.byte)
        bits = range(field.first, field.first + field.width)
        return tuple(bitboard.of_mask((byte >> bit) & 1) for bit in bits)

    def cells(self, name: str) -> CellSet:
        """A field of one bit."""
        (cells,) = self.planes(name)
        return cells


class RecordsInWords(Records):
    """Compact records in packed words, uint32[RECORD_SIZE / 4, ...] of four bytes each."""

    def __init__(self, packed: jax.Array) -> None:
        self._packed = packed

    def __getitem__(self, index: tuple[Any, int]) -> jax.Array:
        """uint32[...]: a byte of each record, by `[..., its index]`."""
        _, byte = index
        return self._packed[byte // 4] >> 8 * (byte % 4) & 0xFF

    def scalar(self, name: str) -> jax.Array:
        """int32[...]."""
        scalar: jax.Array = number_of(self, name)
        return scalar

    def planes(self, name: str) -> BitPlanes[CellSet]:
        """A field of the cells, a set for each of its bits."""
        field = FIELD[name]
        first = PLANE[field.byte] // 4
        bits = range(field.first, field.first + field.width)
        return tuple(
            _set_of([_four_cells(self._packed[first + i] >> bit) for i in range(CELLS // 4)])
            for bit in bits
        )


def _four_cells(word: jax.Array) -> jax.Array:
    """uint32: the lowest bits of four bytes, side by side."""
    word = word & 0x01010101
    word = word | word >> 7
    return (word | word >> 14) & 15


def _set_of(fours: list[jax.Array]) -> CellSet:
    """The set of cells from the bits of each four of them."""
    zero = jnp.zeros_like(fours[0])
    low = reduce(jnp.bitwise_or, (four << 4 * i for i, four in enumerate(fours[:5])), zero)
    high = reduce(jnp.bitwise_or, (four << 4 * i for i, four in enumerate(fours[5:])), zero)
    rest = 4 * 5 - bitboard.HALF  # cells of the fifth four that belong to the upper half
    return CellSet(low & ((1 << bitboard.HALF) - 1), high << rest | fours[4] >> 4 - rest)
