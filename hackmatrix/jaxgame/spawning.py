"""Section 6: where transmissions appear."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, of_cell
from hackmatrix.jaxgame.dice import choose
from hackmatrix.jaxgame.loops import repeat
from hackmatrix.jaxgame.state import (
    TRANSMISSION_SLOTS,
    Position,
    State,
    Transmissions,
    empty_cells,
    enemy_cells,
)
from hackmatrix.rules.board import SIZE
from hackmatrix.rules.chance import Site
from hackmatrix.rules.enemies import EnemyType


def line_of_fire(position: Position) -> Bits:
    """Cells in the player's row or column with no enemy and no block between."""
    stops = position.cells.blocks | enemy_cells(position.enemies)
    line = bitboard.EMPTY
    for direction in bitboard.DIRECTIONS:
        beam = of_cell(position.player.cell)
        for _ in range(SIZE - 1):
            beam = direction(beam)
            line = line | beam
            beam = beam & ~stops
    return line


def spawn_cells(empty: Bits, fire: Bits) -> Bits:
    """The empty cells where a transmission may appear: out of fire if there are any."""
    out_of_fire = empty & ~fire
    return bitboard.select(out_of_fire.any(), out_of_fire, empty)


def spawn(
    state: State, count: jax.Array, scheduled: jax.Array, owed: jax.Array, first: jax.Array | int
) -> State:
    """Place transmissions of random types one after the other, as long as there are cells.

    Args:
        state: the game.
        count: int32, how many at most.
        scheduled: bool, whether the one with index 0 is the scheduled spawn of a turn.
        owed: bool, whether those with other indices are owed to siphoning.
        first: int32, the draws' index of the first of them (`rules.chance`).
    """
    fire = line_of_fire(state)
    empty = empty_cells(state)

    def place(i: jax.Array, carry: tuple[Bits, Transmissions]) -> tuple[Bits, Transmissions]:
        empty, coming = carry
        index = first + i
        cells = spawn_cells(empty, fire)
        spawns = (i < count) & empty.any()
        cell = bitboard.nth(cells, choose(state.dice, Site.SPAWN_CELL, cells.size(), index))
        kind = choose(state.dice, Site.SPAWN_TYPE, len(EnemyType), index)
        new = spawns & (coming.count == TRANSMISSION_SLOTS)
        coming = Transmissions(
            count=coming.count + spawns,
            cell=jnp.where(new, cell, coming.cell).astype(jnp.int8),
            turns=jnp.where(new, 1, coming.turns).astype(jnp.int16),
            type=jnp.where(new, kind, coming.type).astype(jnp.int8),
            from_schedule=jnp.where(new, scheduled & (index == 0), coming.from_schedule),
            from_siphon=jnp.where(new, owed & (index != 0), coming.from_siphon),
        )
        return empty & ~of_cell(cell).where(spawns), coming

    _, transmissions = repeat(count, place, (empty, state.transmissions))
    return replace(state, transmissions=transmissions)
