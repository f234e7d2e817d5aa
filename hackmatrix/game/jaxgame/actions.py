"""Section 3: valid actions, movement and attacks by direction."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import NOBODY, NOWHERE, of_cell
from hackmatrix.game.jaxgame.combat import Blow
from hackmatrix.game.jaxgame.control_flow import where
from hackmatrix.game.jaxgame.programs import can_run
from hackmatrix.game.jaxgame.state import State, saturate
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import DIRECTION_STEPS

_UP, _, _, _RIGHT = range(NUM_DIRECTIONS)


def valid_actions(state: State) -> jax.Array:
    """uint32: bit a is set if action a is valid; 0 after the end."""
    valid = can_go(state) | (state.player.siphons >= 1).astype(jnp.uint32) << SIPHON
    valid |= can_run(state) << FIRST_PROGRAM
    return where(state.over == 0, valid, 0).astype(jnp.uint32)


def can_go(state: State) -> jax.Array:
    """uint32: bit d is set if the next cell in direction d is free or holds an enemy to attack."""
    goals = ~state.cells.blocks | state.enemies_at
    here, valid = of_cell(state.player.cell), jnp.uint32(0)
    for direction, neighbour in enumerate(bitboard.DIRECTIONS):
        valid |= (neighbour(here) & goals).any().astype(jnp.uint32) << direction
    return valid


def target(state: State, direction: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The target of an attack in a direction (int32, 0..3), at any distance.

    Returns:
        int32, the cell of the target (meaningless if there is none); bool, whether there is one;
        bool, whether it is a transmission.
    """
    ray = NOWHERE
    for i, towards in enumerate(bitboard.DIRECTIONS):
        ray = ray | bitboard.ray(state.player.cell, towards).only_if(direction == i)
    pieces = state.enemies_at | state.transmissions_at
    in_sight = ray & (state.cells.blocks | pieces)
    ascends = (direction == _UP) | (direction == _RIGHT)
    cell = where(ascends, bitboard.lowest(in_sight), bitboard.highest(in_sight))
    has_target = in_sight.any() & pieces.has(cell)
    return cell, has_target, state.transmissions_at.has(cell)


def go(state: State, direction: jax.Array, active: jax.Array) -> tuple[State, Blow, jax.Array]:
    """Attacks in a direction if there is a target, else walks one cell.

    Args:
        state: the game.
        direction: int32, 0..3; ignored when not active.
        active: bool, whether the action is a direction.

    Returns:
        The state after a walk, the blow of an attack (still to be dealt), and bool whether the
        player picked up a data siphon.
    """
    cell, has_target, is_transmission = target(state, direction)
    strikes = active & has_target
    on_cell = state.enemies.cell.on(cell) & state.enemies.alive
    blow = Blow(
        damaged=on_cell.first().only_if(strikes & ~is_transmission),
        amount=state.player.attack,
        destroyed=NOBODY,
        uncounted=NOBODY,
        gone=state.transmissions.cell.on(cell).only_if(strikes & is_transmission),
    )
    state, picked_up = walk(state, direction, active & ~has_target)
    return state, blow, picked_up


def walk(state: State, direction: jax.Array, active: jax.Array) -> tuple[State, jax.Array]:
    """Walks to the neighbour; also returns bool, whether a data siphon was picked up there."""
    to = state.player.cell
    for i, step in enumerate(DIRECTION_STEPS):
        to += where(active & (direction == i), step, 0)
    picked_up = active & state.cells.siphons.has(to)
    siphons = saturate(state.player.siphons + picked_up)
    player = replace(state.player, cell=to, siphons=siphons)
    cells = replace(state.cells, siphons=state.cells.siphons & ~of_cell(to).only_if(active))
    return replace(state, player=player, cells=cells), picked_up
