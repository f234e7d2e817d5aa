"""Section 6: spawning of transmissions."""

from dataclasses import replace

import jax

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import CellSet, TransmissionSet, of_cell
from hackmatrix.game.jaxgame.control_flow import compute_once, repeat, where
from hackmatrix.game.jaxgame.planes import BitPlanes, Coordinates
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.enemies import EnemyType

_NOWHERE = CELLS


def line_of_fire(state: State) -> CellSet:
    """Cells in the player's row or column with no enemy and no block between."""
    stops, line = state.cells.blocks | state.enemies_at, bitboard.NOWHERE
    for direction in bitboard.DIRECTIONS:
        cells = bitboard.ray(state.player.cell, direction)
        line = line | bitboard.up_to_first(cells, stops, direction)
    return line


def spawn_cells(empty: CellSet, fire: CellSet) -> CellSet:
    """The empty cells where a transmission may spawn: outside the line of fire if possible."""
    out_of_fire = empty & ~fire
    return bitboard.select(out_of_fire.any(), out_of_fire, empty)


def spawn(
    state: State,
    count: jax.Array,
    scheduled: jax.Array,
    owed: jax.Array,
    first: jax.Array | int,
) -> State:
    """Spawns transmissions of random types one after another, as long as there are cells.

    Args:
        state: the game.
        count: int32, maximum number of spawns.
        scheduled: bool, whether the one with index 0 is the scheduled spawn of a turn.
        owed: bool, whether those with other indices come from siphoning.
        first: int32, index of the first one's draws (`rules.chance`).
    """
    coming, here = state.transmissions, of_cell(state.player.cell)
    occupied = state.cells.blocks | state.enemies_at | state.transmissions_at | here
    fire, empty = compute_once(count > 0, lambda: (line_of_fire(state), ~occupied))

    def spawn_one(i: jax.Array, new: _New) -> _New:
        index = first + i

        def draw() -> tuple[jax.Array, jax.Array]:
            cells = spawn_cells(new[0], fire)
            cell = bitboard.nth(cells, state.dice.choose(Site.SPAWN_CELL, cells.size(), index))
            enemy_type = state.dice.choose(Site.SPAWN_TYPE, len(EnemyType), index)
            return where((i < count) & new[0].any(), cell, _NOWHERE), enemy_type

        cell, enemy_type = compute_once(i < count, draw)
        spawns = (i < count) & (cell != _NOWHERE)
        empty, num_coming, spots, types, from_schedule, from_siphon = new
        slot = of_cell(num_coming).only_if(spawns)
        return (
            empty & ~of_cell(cell).only_if(spawns),
            num_coming + spawns,
            spots.moved(slot, cell),
            planes.put(types, slot, enemy_type),
            from_schedule | slot.only_if(scheduled & (index == 0)),
            from_siphon | slot.only_if(owed & (index != 0)),
        )

    start = (
        empty,
        coming.count,
        coming.cell,
        coming.type,
        coming.from_schedule,
        coming.from_siphon,
    )
    left, num_coming, spots, types, from_schedule, from_siphon = repeat(count, spawn_one, start)
    new_slots = TransmissionSet.below(num_coming) & ~coming.alive
    return replace(
        state,
        transmissions=replace(
            coming,
            count=num_coming,
            cell=spots,
            turns=(coming.turns[0] | new_slots, *coming.turns[1:]),
            type=types,
            from_schedule=from_schedule,
            from_siphon=from_siphon,
        ),
        transmissions_at=state.transmissions_at | (empty ^ left),
    )


# The loop state of `spawn`: the cells still empty, then the list of transmissions without turns.
_New = tuple[
    CellSet,
    jax.Array,
    Coordinates[TransmissionSet],
    BitPlanes[TransmissionSet],
    TransmissionSet,
    TransmissionSet,
]
