"""Reads compact records as numbers and sets of cells."""

import jax

from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import CellSet
from hackmatrix.game.jaxgame.planes import Numbers
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import FIELD, PLANE, CellBytes, number_of


class Records:
    """N compact records: numbers of the games, and fields of the cells as sets."""

    def __init__(self, records: jax.Array) -> None:
        columns = records.T
        self._records = records
        self._bytes = CellBytes(*(columns[start : start + CELLS] for start in PLANE.values()))

    def number(self, name: str) -> jax.Array:
        """int32[N]."""
        number: jax.Array = number_of(self._records, name)
        return number

    def flag(self, name: str) -> jax.Array:
        """bool[N]."""
        return self.number(name) & 1 == 1

    def planes(self, name: str) -> Numbers[CellSet]:
        """A field of the cells, a set for each of its bits."""
        field = FIELD[name]
        byte = getattr(self._bytes, field.byte)
        bits = range(field.first, field.first + field.width)
        return tuple(bitboard.of_mask((byte >> bit) & 1) for bit in bits)

    def cells(self, name: str) -> CellSet:
        """A field of one bit."""
        (cells,) = self.planes(name)
        return cells
