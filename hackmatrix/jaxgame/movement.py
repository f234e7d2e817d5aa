"""Section 5: how an enemy moves. A shortest path is a flood from its goal, one step a round."""

import jax
import jax.numpy as jnp
from jax import lax

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, neighbours, of_cell
from hackmatrix.jaxgame.loops import repeat_while
from hackmatrix.jaxgame.state import manhattan
from hackmatrix.rules.board import CELLS
from hackmatrix.rules.observation import MAX_DISTANCE

_STAY = CELLS  # a cell off the board: no step


def next_cell(
    player: jax.Array, cell: jax.Array, walls: Bits, occupied: Bits, active: jax.Array
) -> jax.Array:
    """int32: the cell an enemy that does not hit moves to; its own when it has to stay.

    Args:
        player: int32, the player's cell.
        cell: int32, the enemy's.
        walls: cells it cannot walk on.
        occupied: cells of all other enemies and transmissions.
        active: bool, whether the answer is needed; floods do not wait for it otherwise.
    """
    start, goal = of_cell(cell), of_cell(player)
    path = first_step(start, goal, walls | (occupied & ~goal), active)
    alone = first_step(start, goal, walls, active & (path == _STAY))
    nearest = step_towards(cell, player, neighbours(start) & ~walls & ~occupied)
    detour = jnp.where((alone == _STAY) | occupied.has(alone), nearest, alone)
    return jnp.where(path == _STAY, detour, path)


def first_step(start: Bits, goal: Bits, blocked: Bits, active: jax.Array) -> jax.Array:
    """int32: the first cell of a shortest path, `_STAY` if there is none.

    Of several shortest paths, the one whose first step comes first in direction order.
    """
    steps = neighbours(start) & ~blocked
    on_goal = (start & goal).any()
    flood = (goal & ~blocked).where(active & ~on_goal)

    def wants_more(carry: tuple[Bits, jax.Array]) -> jax.Array:
        reached, grows = carry
        return grows & ~(reached & steps).any()

    def grow(carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        reached, _ = carry
        grown = reached | (neighbours(reached) & ~blocked).where(wants_more(carry))
        return grown, (grown ^ reached).any()

    reached, _ = repeat_while(wants_more, grow, (flood, flood.any()))
    return _first_direction(start, reached & steps)


def _first_direction(start: Bits, targets: Bits) -> jax.Array:
    """int32: the cell of `targets` that lies first in direction order, `_STAY` if there is none."""
    cell = jnp.int32(_STAY)
    for direction in reversed(bitboard.DIRECTIONS):
        hit = direction(start) & targets
        cell = jnp.where(hit.any(), bitboard.lowest(hit), cell)
    return cell


def step_towards(cell: jax.Array, player: jax.Array, free: Bits) -> jax.Array:
    """int32: the free neighbour nearest to the player, the first in direction order; or `cell`."""
    best, best_distance = cell, jnp.int32(CELLS)
    for direction in bitboard.DIRECTIONS:
        hit = direction(of_cell(cell)) & free
        neighbour = bitboard.lowest(hit)
        distance = jnp.where(hit.any(), manhattan(neighbour, player), CELLS)
        best = jnp.where(distance < best_distance, neighbour, best)
        best_distance = jnp.minimum(distance, best_distance)
    return best


def exit_distance(exit: jax.Array, blocks: Bits, player: jax.Array) -> jax.Array:
    """int32: walking distance of the player to the exit, 0 without a path."""
    here = of_cell(player)
    free = ~blocks | here

    def wants_more(carry: tuple[Bits, jax.Array, jax.Array]) -> jax.Array:
        reached, _, grows = carry
        return grows & ~(reached & here).any()

    def grow(carry: tuple[Bits, jax.Array, jax.Array]) -> tuple[Bits, jax.Array, jax.Array]:
        reached, distance, _ = carry
        more = wants_more(carry)
        grown = reached | (neighbours(reached) & free).where(more)
        return grown, distance + more, (grown ^ reached).any()

    start = of_cell(exit)
    reached, distance, _ = repeat_while(wants_more, grow, (start, jnp.int32(0), start.any()))
    return jnp.where((reached & here).any(), distance, 0)


def exit_distances(exit: jax.Array, blocks: Bits, player: jax.Array) -> jax.Array:
    """int32[36]: walking distance from the exit over non-block cells, at most 10."""
    free = ~blocks | of_cell(player)

    def grow(_: int, carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        reached, distances = carry
        distances += ~bitboard.to_mask(reached)
        return reached | (neighbours(reached) & free), distances

    start = of_cell(exit), jnp.zeros(CELLS, jnp.int32)
    return lax.fori_loop(0, MAX_DISTANCE, grow, start)[1]
