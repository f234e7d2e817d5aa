"""Section 3: what the player can do, and directions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, of_cell
from hackmatrix.jaxgame.combat import Blow, no_blow
from hackmatrix.jaxgame.programs import can_run
from hackmatrix.jaxgame.state import (
    State,
    enemy_cells,
    first,
    saturated,
    transmission_cells,
)
from hackmatrix.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.rules.board import CELLS, NEIGHBOUR


def _ray(cell: int, direction: int) -> Bits:
    cells, at = [], NEIGHBOUR[cell][direction]
    while at is not None:
        cells.append(at)
        at = NEIGHBOUR[at][direction]
    return bitboard.constant(cells)


# _RAYS[cell * 4 + direction]: the cells from the neighbour to the edge.
_RAYS = [_ray(cell, direction) for cell in range(CELLS) for direction in range(NUM_DIRECTIONS)]
_RAYS_LOW = np.array([ray.low for ray in _RAYS], np.uint32)
_RAYS_HIGH = np.array([ray.high for ray in _RAYS], np.uint32)
_STEP = np.array([6, -6, -1, 1], np.int32)  # the neighbour's index minus the cell's
_ASCENDING = _STEP > 0  # the nearest cell of a ray is its smallest


def valid_actions(state: State) -> jax.Array:
    """uint32: bit a is set if action a can be taken now; 0 after the end."""
    valid = can_go(state) | (state.player.siphons >= 1).astype(jnp.uint32) << SIPHON
    valid |= can_run(state) << FIRST_PROGRAM
    return jnp.where(state.over == 0, valid, 0).astype(jnp.uint32)


def can_go(state: State) -> jax.Array:
    """uint32: bit d is set if there is something to hit or a free cell in direction d."""
    goals = ~state.cells.blocks | enemy_cells(state.enemies)
    here, valid = of_cell(state.player.cell), jnp.uint32(0)
    for direction, neighbour in enumerate(bitboard.DIRECTIONS):
        valid |= (neighbour(here) & goals).any().astype(jnp.uint32) << direction
    return valid


def target(state: State, direction: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What an attack in a direction would strike, at any distance.

    Returns:
        int32 the cell of the target (no cell if there is none), bool whether there is one, bool
        whether it is a transmission.
    """
    enemies, coming = enemy_cells(state.enemies), transmission_cells(state.transmissions)
    place = state.player.cell * NUM_DIRECTIONS + direction
    ray = Bits(jnp.asarray(_RAYS_LOW)[place], jnp.asarray(_RAYS_HIGH)[place])
    seen = ray & (state.cells.blocks | enemies | coming)
    ascending = jnp.asarray(_ASCENDING)[direction]
    cell = jnp.where(ascending, bitboard.lowest(seen), bitboard.highest(seen))
    found = seen.any() & (enemies | coming).has(cell)
    return cell, found, coming.has(cell)


def go(state: State, direction: jax.Array, active: jax.Array) -> tuple[State, Blow, jax.Array]:
    """Attack along a direction, or walk one cell.

    Args:
        state: the game.
        direction: int32, 0..3; anything when not active.
        active: bool, whether the action is a direction at all.

    Returns:
        The state after a step, the blow of an attack, and bool whether the player picked up a data
        siphon.
    """
    direction = jnp.clip(direction, 0, NUM_DIRECTIONS - 1)
    cell, found, is_transmission = target(state, direction)
    strikes = active & found
    enemies, coming = state.enemies, state.transmissions
    blow = no_blow()._replace(
        damaged=first(enemies.alive & (enemies.cell == cell)) & strikes & ~is_transmission,
        amount=state.player.attack,
        gone=coming.alive & (coming.cell == cell) & strikes & is_transmission,
    )
    state, picked_up = walk(state, direction, active & ~found)
    return state, blow, picked_up


def walk(state: State, direction: jax.Array, active: jax.Array) -> tuple[State, jax.Array]:
    """Walk to the neighbour; also bool whether a data siphon lay there."""
    to = state.player.cell + jnp.where(active, jnp.asarray(_STEP)[direction], 0)
    picked_up = active & state.cells.siphons.has(to)
    siphons = saturated(state.player.siphons + picked_up)
    player = replace(state.player, cell=to, siphons=siphons)
    cells = replace(state.cells, siphons=state.cells.siphons & ~of_cell(to).where(active))
    return replace(state, player=player, cells=cells), picked_up
