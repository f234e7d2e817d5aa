"""Sets of cells as the bits of an int: bit `cell` is set if the cell is in the set."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from hackmatrix.game.rules import board
from hackmatrix.game.rules.board import (
    CELLS,
    DIRECTION_STEPS,
    NEIGHBOUR,
    NEIGHBOURS,
    SIZE,
    col,
    row,
)

ALL = (1 << CELLS) - 1
BIT = tuple(1 << cell for cell in range(CELLS))
NO_PATH = CELLS  # as a distance: longer than any path


def set_of(cells: Iterable[int]) -> int:
    """The set of these cells."""
    return sum({BIT[cell] for cell in cells})


# For each cell: its neighbours, it and them, the up to 8 adjacent cells, its row, its column.
NEXT_TO = tuple(map(set_of, NEIGHBOURS))
CROSS = tuple(map(set_of, board.CROSS))
AROUND = tuple(map(set_of, board.AROUND))
ROW = tuple(set_of(c for c in range(CELLS) if row(c) == row(cell)) for cell in range(CELLS))
COL = tuple(set_of(c for c in range(CELLS) if col(c) == col(cell)) for cell in range(CELLS))

_NOT_FIRST_COL, _NOT_LAST_COL = ALL & ~COL[0], ALL & ~COL[SIZE - 1]


def members(cells: int) -> Iterator[int]:
    """The cells of a set, ascending."""
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def neighbours(cells: int) -> int:
    """The cells next to at least one cell of a set."""
    up_and_down = cells << SIZE | cells >> SIZE
    return (up_and_down | (cells & _NOT_FIRST_COL) >> 1 | (cells & _NOT_LAST_COL) << 1) & ALL


def _ray(cell: int, direction: int) -> Iterator[int]:
    here = NEIGHBOUR[cell][direction]
    while here is not None:
        yield here
        here = NEIGHBOUR[here][direction]


# RAY[cell][direction]: the cells from the next one to the edge.
RAY = tuple(tuple(tuple(_ray(cell, d)) for d in range(4)) for cell in range(CELLS))


def first_on_ray(cell: int, direction: int, stops: int) -> int | None:
    """The first cell of a set in a direction, or None."""
    for here in RAY[cell][direction]:
        if stops >> here & 1:
            return here
    return None


@lru_cache(1 << 12)
def distances(goals: int, free: int) -> tuple[int, ...]:
    """Walking distance to the nearest of some cells from each cell of `free`.

    `NO_PATH` from all others.
    """
    steps = [NO_PATH] * CELLS
    reached = frontier = goals
    distance = 0
    while frontier:
        for cell in members(frontier):
            steps[cell] = distance
        frontier = neighbours(frontier) & free & ~reached
        reached |= frontier
        distance += 1
    return tuple(steps)


@lru_cache(1 << 16)
def first_step(cell: int, goal: int, free: int) -> int | None:
    """The first step of a shortest path between two cells that are not neighbours.

    Of several it is the first in the order of directions, as enemies choose (section 5).
    """
    ways = NEXT_TO[cell] & free
    reached = frontier = BIT[goal]
    while ways and frontier:
        frontier = neighbours(frontier) & free & ~reached
        if frontier & ways:
            steps = frontier & ways
            return next(cell + step for step in DIRECTION_STEPS if _has(steps, cell + step))
        reached |= frontier
    return None


def _has(cells: int, cell: int) -> bool:
    return cell >= 0 and bool(cells >> cell & 1)
