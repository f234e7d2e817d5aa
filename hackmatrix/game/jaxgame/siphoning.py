"""Section 7: siphoning, and the quality of a cell for it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import NOWHERE, CellSet, Set32, cross, of_cell
from hackmatrix.game.jaxgame.control_flow import compute_once, where
from hackmatrix.game.jaxgame.planes import BitPlanes
from hackmatrix.game.jaxgame.state import State, saturate
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import MIN_INTERVAL, SIPHON_DELAY


def siphon(state: State, active: jax.Array) -> State:
    """Siphons the player's cell and its neighbours.

    The spawns of siphoned blocks become pending.
    """
    cells, player = state.cells, state.player
    here = of_cell(player.cell)
    area = cross(here).only_if(active)
    fresh = area & ~cells.siphoned
    blocks, open_ = fresh & cells.blocks, fresh & ~cells.blocks
    owed = planes.total(cells.spawn, blocks)
    state = _take_programs(state, blocks & ~cells.data)
    return replace(
        state,
        player=replace(
            player,
            credits=saturate(player.credits + planes.total(cells.credits, open_)),
            energy=saturate(player.energy + planes.total(cells.energy, open_)),
            score=saturate(player.score + planes.total(cells.value, fresh & cells.data)),
            siphons=player.siphons - active,
        ),
        cells=replace(
            cells,
            questions=cells.questions & ~fresh,
            siphoned=cells.siphoned | area,
            center=cells.center | here.only_if(active),
            credits=planes.clear(cells.credits, open_),
            energy=planes.clear(cells.energy, open_),
            spawn=planes.clear(cells.spawn, blocks),
        ),
        pending=saturate(state.pending + owed),
        interval=where(active, jnp.maximum(MIN_INTERVAL, state.interval - 1), state.interval),
        next_task=where(active, saturate(state.next_task + SIPHON_DELAY), state.next_task),
    )


def _take_programs(state: State, blocks: CellSet) -> State:
    """Adds the programs of these blocks to the owned ones, in the order of siphoning."""
    owned, acquired = state.owned, state.acquired
    here = of_cell(state.player.cell)
    cells = [blocks & cell for cell in (here, *(step(here) for step in bitboard.DIRECTIONS))]
    programs = compute_once(
        blocks.any(), lambda: [planes.total(state.cells.value, cell) for cell in cells]
    )
    for cell, program in zip(cells, programs, strict=True):
        new = cell.any() & ((owned >> program.astype(jnp.uint32)) & 1 == 0)
        slot = jax.lax.population_count(owned).astype(jnp.int32)
        acquired = planes.put(acquired, Set32.of_slot(slot).only_if(new), program)
        owned |= new.astype(jnp.uint32) << program.astype(jnp.uint32)
    return replace(state, owned=owned, acquired=acquired)


def missed_resources(state: State) -> jax.Array:
    """int32: further credits and energy that a better cell would have given.

    A cell is as good in blocks as the player's if its cross holds the same unsiphoned blocks;
    beyond these it may only have programs that would bring nothing new.
    """
    cells = state.cells
    here, left = of_cell(state.player.cell), ~cells.siphoned
    stands = ~(here & cells.blocks).any()  # on a block there is nothing to compare with
    own = cross(here).only_if(stands) & cells.blocks & left
    held = state.owned | _programs(cells.value, own & ~cells.data)
    worth = (cells.data | (cells.blocks & ~cells.data & ~_among(cells.value, held))) & left
    brings = (own & (cells.data | ~_among(cells.value, state.owned))).any()

    # A candidate has the player's blocks in its cross, and no other of worth: so it is in the cross
    # of each of them and of no other. All cells at once, in 2,000 operations on words on any board.
    candidates = ~cells.blocks & ~cross(worth & ~own.only_if(brings))
    for direction in (lambda bits: bits, *bitboard.DIRECTIONS):
        block = direction(here) & own.only_if(brings)
        candidates &= bitboard.select(block.any(), cross(block), bitboard.EVERYWHERE)
    credits = _over_cross(cells.credits, left & ~cells.blocks)
    energy = _over_cross(cells.energy, left & ~cells.blocks)
    own_credits = planes.total(credits, here.only_if(stands))
    own_energy = planes.total(energy, here.only_if(stands))
    better = candidates & planes.at_least(credits, own_credits)
    better &= planes.at_least(energy, own_energy)

    def most(amounts: BitPlanes[CellSet], own: jax.Array) -> jax.Array:
        return jnp.maximum(planes.largest(amounts, better) - own, 0)

    return most(credits, own_credits) + most(energy, own_energy)


def _programs(values: BitPlanes[CellSet], blocks: CellSet) -> jax.Array:
    """uint32: bit n is set if one of these blocks holds program n."""
    result = jnp.uint32(0)
    for program, cells in enumerate(planes.one_hot(values, len(PROGRAMS))):
        result |= (cells & blocks).any().astype(jnp.uint32) << np.uint32(program)
    return result


def _among(values: BitPlanes[CellSet], programs: jax.Array) -> CellSet:
    """The cells whose program is in a set of programs (uint32)."""
    result = bitboard.NOWHERE
    for program, cells in enumerate(planes.one_hot(values, len(PROGRAMS))):
        result = result | cells.only_if((programs >> np.uint32(program)) & 1 == 1)
    return result


def _over_cross(values: BitPlanes[CellSet], cells: CellSet) -> BitPlanes[CellSet]:
    """For each cell, the sum over its cross of the values at some cells; 4 planes."""
    low, high = (plane & cells for plane in values)
    sides = [(direction(low), direction(high)) for direction in bitboard.DIRECTIONS]
    pairs = planes.add(planes.add(sides[0], sides[1]), planes.add(sides[2], sides[3]))
    return planes.add(pairs, (low, high, NOWHERE, NOWHERE))[:4]  # at most 5 x 3
