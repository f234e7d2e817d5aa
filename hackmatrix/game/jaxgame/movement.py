"""Section 5: enemy movement. Shortest paths are found by a flood fill from the goal."""

from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import (
    NOWHERE,
    CellSet,
    EnemySet,
    col_of,
    flood_step,
    neighbours,
    of_cell,
    row_of,
)
from hackmatrix.game.jaxgame.control_flow import for_all, repeat_while, rounds, where
from hackmatrix.game.jaxgame.planes import BitPlanes, Coordinates
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.board import CELLS, DIRECTION_STEPS
from hackmatrix.game.rules.observation import MAX_DISTANCE


class Answer(IntEnum):
    """Results of `next_cell` other than a cell."""

    HITS = CELLS
    SEARCH_ON = CELLS + 1
    SEARCH_ALONE = CELLS + 2


# Rounds of a flood fill per call. Even: two neighbours of an enemy are an even number of steps
# apart, so of two rounds only one can reach any of them first.
_ROUNDS = 6


class Surroundings(NamedTuple):
    """The inputs of an enemy's decision."""

    cell: jax.Array  # int32, the enemy's
    player: jax.Array  # int32, the player's
    walls: CellSet  # cells it cannot walk on
    others: CellSet  # cells of all other enemies and the transmissions
    alone: jax.Array  # bool, whether it searches as if there were no others


def manhattan(coordinates: Coordinates[EnemySet], cell: jax.Array) -> BitPlanes[EnemySet]:
    """|row distance| + |col distance| from each enemy to a cell."""
    rows = _line_distance(coordinates.row, row_of(cell))
    return planes.add(rows, _line_distance(coordinates.col, col_of(cell)))


def _line_distance(lines: BitPlanes[EnemySet], line: jax.Array) -> BitPlanes[EnemySet]:
    """|difference| between each enemy's row (or column) and one row (or column)."""
    everyone = EnemySet.all_if(jnp.bool(True))
    difference, below = planes.subtract(lines, everyone, line)
    return planes.increment(tuple(plane ^ below for plane in difference), below)


def flood(around: Surroundings, reached: CellSet) -> CellSet:
    """Some rounds of a flood fill from the player over the cells that the enemy may use.

    It stops when it reaches a neighbour of the enemy.

    Args:
        around: the enemy's surroundings.
        reached: the cells reached in earlier rounds; empty at the start.
    """
    start, goal = of_cell(around.cell), of_cell(around.player)
    blocked = _blocked(around)
    steps = neighbours(start) & ~blocked
    begins = (goal & ~blocked).only_if(around.cell != around.player)
    reached = bitboard.select(reached.any(), reached, begins)
    for _ in range(_ROUNDS // 2):
        arrived = (reached & steps).any()
        further = flood_step(flood_step(reached, ~blocked), ~blocked)
        reached = bitboard.select(arrived, reached, further)
    return reached


def next_cell(around: Surroundings, reached: CellSet) -> jax.Array:
    """int32: the cell that an enemy moves to after a flood, its own if it has to stay.

    Or `Answer.HITS` if it is next to the player, `SEARCH_ON` if the flood has to continue, and
    `SEARCH_ALONE` if there is no path and it has to search again without the other pieces.
    """
    # The flood comes from the player: the first neighbour of the enemy that it reaches begins a
    # shortest path. A call costs `_ROUNDS` rounds, however long the path; a longer one takes more.
    start, goal = of_cell(around.cell), of_cell(around.player)
    blocked, others = _blocked(around), around.others
    next_to = neighbours(start)
    arrived = reached & next_to & ~blocked
    grows = ((flood_step(reached, ~blocked) ^ reached) & ~blocked).any()

    path = _first_step(around.cell, arrived)
    nearest = _step_towards(around, next_to & ~around.walls & ~others)
    way = where(around.alone & others.has(path), nearest, path)
    no_way = where(around.alone, nearest, Answer.SEARCH_ALONE)
    answer = where(arrived.any(), way, where(grows, Answer.SEARCH_ON, no_way))
    return where((next_to & goal).any(), Answer.HITS, answer)


def _blocked(around: Surroundings) -> CellSet:
    in_the_way = around.others & ~of_cell(around.player)
    return around.walls | in_the_way.only_if(~around.alone)


def _first_step(cell: jax.Array, targets: CellSet) -> jax.Array:
    """int32: the first neighbour of `cell` in `targets`, in direction order; else `cell`."""
    step = jnp.int32(0)
    for direction, offset in reversed(list(zip(bitboard.DIRECTIONS, DIRECTION_STEPS, strict=True))):
        step = where((direction(of_cell(cell)) & targets).any(), offset, step)
    return cell + step


def _step_towards(around: Surroundings, free: CellSet) -> jax.Array:
    """int32: the free neighbour nearest to the player, the first in direction order; or `cell`.

    A step changes the distance by one, so any step towards the player is better than any other.
    """
    here, player = of_cell(around.cell), around.player
    rows = row_of(player) - row_of(around.cell)
    cols = col_of(player) - col_of(around.cell)
    nearer = NOWHERE
    for direction, helps in zip(
        bitboard.DIRECTIONS, (rows > 0, rows < 0, cols < 0, cols > 0), strict=True
    ):
        nearer |= (direction(here) & free).only_if(helps)
    return _first_step(around.cell, bitboard.select(nearer.any(), nearer, free))


def exit_distance(state: State) -> jax.Array:
    """int32: walking distance of the player to the exit, 0 without a path."""
    here = of_cell(state.player.cell)
    free = ~state.cells.blocks | here

    def wants_more(carry: tuple[CellSet, jax.Array, jax.Array]) -> jax.Array:
        reached, _, grows = carry
        return grows & ~(reached & here).any()

    def grow(carry: tuple[CellSet, jax.Array, jax.Array]) -> tuple[CellSet, jax.Array, jax.Array]:
        before, distance, _ = carry
        reached = before
        for _ in range(_ROUNDS):
            distance += ~(reached & here).any()
            reached = flood_step(reached, free)
        return reached, distance, (reached ^ before).any()

    start = of_cell(state.exit)
    carry = for_all((start, jnp.int32(0), start.any()), like=state.exit)
    reached, distance, _ = repeat_while(wants_more, grow, carry)
    return where((reached & here).any(), distance, 0)


def exit_distances(state: State) -> BitPlanes[CellSet]:
    """Walking distance from the exit to each cell over cells without blocks, 10 if farther.

    The player's cell counts as free even if it is a block.
    """
    free = ~state.cells.blocks | of_cell(state.player.cell)

    def farther(
        _: jax.Array, carry: tuple[CellSet, BitPlanes[CellSet]]
    ) -> tuple[CellSet, BitPlanes[CellSet]]:
        reached, distance = carry
        return flood_step(reached, free), planes.increment(distance, ~reached)

    nowhere = (NOWHERE,) * MAX_DISTANCE.bit_length()
    start = of_cell(state.exit), for_all(nowhere, like=state.exit)
    _, distance = rounds(MAX_DISTANCE, farther, start)
    return distance
