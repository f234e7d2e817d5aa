"""Section 1: the board's geometry and what a cell can hold.

A cell is its flat index `row * 6 + col`; row 0 is drawn at the bottom:

    row 5   30 31 32 33 34 35
    row 4   24 25 26 27 28 29
    row 3   18 19 20 21 22 23
    row 2   12 13 14 15 16 17
    row 1    6  7  8  9 10 11
    row 0    0  1  2  3  4  5
"""

from collections.abc import Mapping
from enum import IntEnum

SIZE = 6
CELLS = SIZE * SIZE
CORNERS = (0, 5, 30, 35)  # (0,0), (0,5), (5,0), (5,5)
LIMIT = 32_767  # maximum at which unbounded numbers saturate
MAX_RESOURCE = 3  # credits or energy on one cell
MAX_POINTS = 9
MAX_SPAWN = 99

DIRECTIONS = ((1, 0), (-1, 0), (0, -1), (0, 1))  # up, down, left, right: always tried in this order
DIRECTION_STEPS = tuple(rows * SIZE + cols for rows, cols in DIRECTIONS)  # from cell to neighbour


class Content(IntEnum):
    """Kinds of cells."""

    EMPTY = 0
    DATA = 1
    PROGRAM = 2
    QUESTION = 3
    SIPHON = 4
    EXIT = 5

    @classmethod
    def of_marks(cls, marks: Mapping[str, bool], *, is_exit: bool) -> "Content":
        """The kind of a cell that is in these sets: `questions blocks data siphons`."""
        if marks["questions"]:
            return cls.QUESTION
        if marks["blocks"]:
            return cls.DATA if marks["data"] else cls.PROGRAM
        if is_exit:
            return cls.EXIT
        return cls.SIPHON if marks["siphons"] else cls.EMPTY


BLOCKS = (Content.DATA, Content.PROGRAM, Content.QUESTION)


def row(cell: int) -> int:
    """Row 0..5 of a cell."""
    return cell // SIZE


def col(cell: int) -> int:
    """Column 0..5 of a cell."""
    return cell % SIZE


def _shifted(cell: int, rows: int, cols: int) -> int | None:
    r, c = row(cell) + rows, col(cell) + cols
    return r * SIZE + c if 0 <= r < SIZE and 0 <= c < SIZE else None


def _on_board(cells: list[int | None]) -> tuple[int, ...]:
    return tuple(cell for cell in cells if cell is not None)


# NEIGHBOUR[cell][direction]: the next cell, None beyond the edge.
NEIGHBOUR = tuple(tuple(_shifted(cell, *d) for d in DIRECTIONS) for cell in range(CELLS))
# NEIGHBOURS[cell]: the 2 to 4 neighbours on the board, in direction order.
NEIGHBOURS = tuple(_on_board(list(row_of)) for row_of in NEIGHBOUR)
# CROSS[cell]: the cell and its neighbours, the cells that siphoning affects.
CROSS = tuple((cell, *NEIGHBOURS[cell]) for cell in range(CELLS))
# AROUND[cell]: the up to 8 adjacent cells, diagonals included.
AROUND = tuple(
    _on_board([_shifted(cell, r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)])
    for cell in range(CELLS)
)
