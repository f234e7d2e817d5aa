"""Section 7: siphoning, and how good a place for it is."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, of_cell, to_mask
from hackmatrix.jaxgame.state import State, pick, saturated
from hackmatrix.rules.board import CELLS, MAX_POINTS, SIZE
from hackmatrix.rules.programs import PROGRAMS
from hackmatrix.rules.stages import MIN_INTERVAL, SIPHON_DELAY


def siphon(state: State, active: jax.Array) -> State:
    """Take the player's cell and its neighbours; what blocks spawn is owed from now on."""
    cells, player = state.cells, state.player
    here = of_cell(player.cell)
    cross = bitboard.cross(here).where(active)
    taken = cross & ~cells.siphoned
    blocks = to_mask(taken & cells.blocks)
    data = to_mask(taken & cells.data)
    open_ = to_mask(taken & ~cells.blocks)

    def total(values: jax.Array, where: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(where, values, 0), dtype=jnp.int32)

    state = _take_programs(state, taken & cells.blocks & ~cells.data)
    return replace(
        state,
        player=replace(
            player,
            credits=saturated(player.credits + total(cells.credits, open_)),
            energy=saturated(player.energy + total(cells.energy, open_)),
            score=saturated(player.score + total(cells.value, data)),
            siphons=player.siphons - active,
        ),
        cells=replace(
            cells,
            questions=cells.questions & ~taken,
            siphoned=cells.siphoned | cross,
            center=cells.center | here.where(active),
            credits=jnp.where(open_, 0, cells.credits),
            energy=jnp.where(open_, 0, cells.energy),
            spawn=jnp.where(blocks, 0, cells.spawn),
        ),
        pending=saturated(state.pending + total(cells.spawn, blocks)),
        interval=jnp.where(active, jnp.maximum(MIN_INTERVAL, state.interval - 1), state.interval),
        next_task=jnp.where(active, saturated(state.next_task + SIPHON_DELAY), state.next_task),
    )


def _take_programs(state: State, blocks: Bits) -> State:
    """Own the programs of these blocks, in the order siphoning takes them."""
    owned, acquired = state.owned, state.acquired
    here = of_cell(state.player.cell)
    for cell in (here, *(direction(here) for direction in bitboard.DIRECTIONS)):
        number = pick(state.cells.value, to_mask(cell & blocks)).astype(jnp.uint32)
        new = (cell & blocks).any() & ((owned >> number) & 1 == 0)
        place = jax.lax.population_count(owned).astype(jnp.int32)
        at_place = new & (place == jnp.arange(len(PROGRAMS)))
        acquired = jnp.where(at_place, number, acquired).astype(jnp.int8)
        owned |= new.astype(jnp.uint32) << number
    return replace(state, owned=owned, acquired=acquired)


def missed(state: State) -> jax.Array:
    """int32: credits and energy that a better place to siphon would bring on top."""
    cells = state.cells
    here = of_cell(state.player.cell)
    unsiphoned = ~cells.siphoned
    open_ = to_mask(unsiphoned & ~cells.blocks)
    on_block = (here & cells.blocks).any()

    credits = over_cross(jnp.where(open_, cells.credits, 0).astype(jnp.int32), jnp.add)
    energy = over_cross(jnp.where(open_, cells.energy, 0).astype(jnp.int32), jnp.add)
    points, programs = block_yield(state, unsiphoned)
    at_here = to_mask(here) & ~on_block

    def own(values: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(at_here, values, 0), dtype=values.dtype)

    wants_blocks = (own(points) | own(programs)) != 0
    candidates = ~cells.blocks
    for cell in (here, *(direction(here) for direction in bitboard.DIRECTIONS)):
        bound = wants_blocks & (cell & cells.blocks & unsiphoned).any()
        candidates &= bitboard.select(bound, bitboard.cross(cell), bitboard.FULL)
    better = (
        to_mask(candidates)
        & (points == own(points))
        & (programs == own(programs))
        & (credits >= own(credits))
        & (energy >= own(energy))
    )

    def most(values: jax.Array) -> jax.Array:
        return jnp.max(jnp.where(better, values - own(values), 0))

    return most(credits) + most(energy)


def block_yield(state: State, unsiphoned: Bits) -> tuple[jax.Array, jax.Array]:
    """uint32[36] each: the points and the programs that siphoning at a cell would bring.

    Points are a multiset: how often each value 0..9 occurs, three bits each. Programs are a set.
    """
    cells = state.cells
    value = cells.value.astype(jnp.uint32)
    data = to_mask(cells.data & unsiphoned)
    new = to_mask(cells.blocks & ~cells.data & unsiphoned) & ((state.owned >> value) & 1 == 0)
    one, none = jnp.uint32(1), jnp.uint32(0)
    points = jnp.where(data, one << (3 * jnp.minimum(value, MAX_POINTS)), none)
    programs = jnp.where(new, one << value, none)
    return over_cross(points, jnp.add), over_cross(programs, jnp.bitwise_or)


def over_cross(
    values: jax.Array, combine: Callable[[jax.Array, jax.Array], jax.Array]
) -> jax.Array:
    """[36]: for each cell the combination of the values of its cross, nothing beyond the edge."""
    board = jnp.pad(values.reshape(SIZE, SIZE), 1)
    total = board[1:-1, 1:-1]
    for part in (board[2:, 1:-1], board[:-2, 1:-1], board[1:-1, :-2], board[1:-1, 2:]):
        total = combine(total, part)
    return total.reshape(CELLS)
