"""Section 9: a stage begins."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, neighbours, of_cell, of_mask, to_mask
from hackmatrix.jaxgame.dice import Dice, choose
from hackmatrix.jaxgame.loops import repeat, repeat_while
from hackmatrix.jaxgame.spawning import spawn
from hackmatrix.jaxgame.state import (
    Cells,
    State,
    enemy_cells,
    transmission_cells,
)
from hackmatrix.rules.board import CELLS, CORNERS, MAX_POINTS
from hackmatrix.rules.chance import FIRST_STAGE_SPAWN, LAYOUT_STRIDE, Site
from hackmatrix.rules.programs import PROGRAMS
from hackmatrix.rules.stages import (
    AMOUNT_CHANCES,
    LAYOUT_TRIES,
    MAX_BLOCKS,
    MIN_BLOCKS,
    QUESTION_CHANCES,
)

_CORNERS = bitboard.constant(CORNERS)
_SPAWN = np.array([program.spawn for program in PROGRAMS], np.int32)
_AMOUNT = np.array(AMOUNT_CHANCES, np.int32)


def begin_stage(state: State) -> State:
    """Lay out a new board around the pieces, which stay as they are."""
    no, zero = jnp.zeros_like(state.show), jnp.zeros_like(state.turn)
    exit, siphons = place_corners(state)
    state = replace(
        state,
        turn=zero,
        next_task=state.interval,
        show=no,
        calm=no,
        step=no,
        atk_uses=zero,
        saved_count=zero,
        exit=exit,
    )
    cells = place_blocks(state, siphons)
    state = replace(state, cells=place_resources(state.dice, cells, exit))
    return spawn(state, state.stage, scheduled=no, owed=no, first=FIRST_STAGE_SPAWN)


def place_corners(state: State) -> tuple[jax.Array, Bits]:
    """The exit in a random corner and data siphons in those left; the player's stays empty."""
    free = _CORNERS & ~of_cell(state.player.cell)
    exit = bitboard.nth(free, choose(state.dice, Site.EXIT_CORNER, free.size()))
    return exit, free & ~of_cell(exit)


def place_blocks(state: State, siphons: Bits) -> Cells:
    """5 to 11 blocks in a valid layout; none if there is no such layout after 100 tries."""
    dice = state.dice
    count = MIN_BLOCKS + choose(dice, Site.BLOCK_COUNT, MAX_BLOCKS + 1 - MIN_BLOCKS)
    layout = choose_layout(state, count)
    blocks, is_data, is_question, points, programs = draw_blocks(dice, layout)

    def on_board(values: jax.Array) -> jax.Array:
        """[36]: the values of the blocks (in the order drawn) at their cells, 0 elsewhere."""
        at = layout[:, None] == jnp.arange(CELLS)[None, :]
        return jnp.sum(jnp.where(at, values[:, None], 0), axis=0)

    spawns = jnp.where(is_data, points, jnp.asarray(_SPAWN)[programs])
    nothing = jnp.zeros(CELLS, jnp.int8)
    return Cells(
        blocks=blocks,
        data=of_mask(on_board(is_data) > 0),
        questions=of_mask(on_board(is_question) > 0),
        siphons=siphons,
        siphoned=_empty(),
        center=_empty(),
        credits=nothing,
        energy=nothing,
        value=on_board(jnp.where(is_data, points, programs)).astype(jnp.int8),
        spawn=on_board(spawns).astype(jnp.int8),
    )


def _empty() -> Bits:
    return Bits(jnp.uint32(0), jnp.uint32(0))


def choose_layout(state: State, count: jax.Array) -> jax.Array:
    """int32[11]: the cells of the blocks, in the order they were drawn, -1 for those not there."""
    occupied = enemy_cells(state.enemies) | transmission_cells(state.transmissions)
    free = ~_CORNERS & ~occupied
    count = jnp.minimum(count, free.size())
    nobody = jnp.full(MAX_BLOCKS, -1)

    def wants_more(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        attempt, _, is_valid = carry
        return ~is_valid & (attempt < LAYOUT_TRIES)

    def retry(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        attempt, layout, _ = carry
        tries = wants_more(carry)
        candidate, blocks = draw_layout(state.dice, free, count, attempt)
        layout = jnp.where(tries, candidate, layout)
        is_valid = ~tries | is_valid_layout(blocks, state.exit, tries)
        return attempt + 1, layout, is_valid

    start = jnp.int32(0), nobody, jnp.zeros_like(state.show)
    _, layout, is_valid = repeat_while(wants_more, retry, start)
    return jnp.where(is_valid, layout, nobody)


def draw_layout(
    dice: Dice, free: Bits, count: jax.Array, attempt: jax.Array
) -> tuple[jax.Array, Bits]:
    """One try: int32[11] cells in the order drawn (-1 for those not there), and their set."""

    def place(i: jax.Array, carry: tuple[jax.Array, Bits]) -> tuple[jax.Array, Bits]:
        layout, blocks = carry
        options = free & ~blocks
        drawn = choose(dice, Site.BLOCK_CELL, options.size(), attempt * LAYOUT_STRIDE + i)
        cell = jnp.where(i < count, bitboard.nth(options, drawn), -1)
        return jnp.where(i == jnp.arange(MAX_BLOCKS), cell, layout), blocks | of_cell(cell)

    return repeat(count, place, (jnp.full(MAX_BLOCKS, -1), _empty()))


def is_valid_layout(blocks: Bits, exit: jax.Array, active: jax.Array) -> jax.Array:
    """All free cells hang together without passing through the exit; no block is walled in."""
    free = ~blocks
    no_way_on = of_cell(exit).where(exit != 0)

    def wants_more(carry: tuple[Bits, jax.Array]) -> jax.Array:
        return carry[1]

    def grow(carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        reached, grows = carry
        grown = reached | (neighbours(reached & ~no_way_on) & free).where(grows)
        return grown, (grown ^ reached).any()

    start = of_cell(jnp.zeros_like(exit))
    reached, _ = repeat_while(wants_more, grow, (start, active))
    walled_in = blocks & ~neighbours(free)
    return ~(reached ^ free).any() & ~walled_in.any()


def draw_blocks(
    dice: Dice, layout: jax.Array
) -> tuple[Bits, jax.Array, jax.Array, jax.Array, jax.Array]:
    """The contents of the blocks, in the order their cells were drawn.

    Returns:
        The set of blocks, then [11] each: bool data, bool question, int32 points, int32 programs.
    """
    places = jnp.arange(MAX_BLOCKS)
    exists = layout >= 0
    is_data = exists & (choose(dice, Site.BLOCK_IS_DATA, 2, places) == 0)
    question = choose(dice, Site.BLOCK_IS_QUESTION, len(QUESTION_CHANCES), places) == 0
    points = 1 + choose(dice, Site.BLOCK_POINTS, MAX_POINTS, places)
    programs = draw_programs(dice, exists & ~is_data)
    return bitboard.of_cells(layout, exists), is_data, exists & question, points, programs


def draw_programs(dice: Dice, wanted: jax.Array) -> jax.Array:
    """int32[11]: programs for the blocks that want one, no two the same; 0 for the others."""

    def draw(place: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, programs = carry
        options = lax.population_count(left).astype(jnp.int32)
        number = bitboard.nth_bit(left, choose(dice, Site.BLOCK_PROGRAM, options, place))
        taken = wanted[place].astype(jnp.uint32) << number.astype(jnp.uint32)
        here = (place == jnp.arange(MAX_BLOCKS)) & wanted
        return left & ~taken, jnp.where(here, number, programs)

    everything = jnp.uint32((1 << len(PROGRAMS)) - 1)
    start = everything, jnp.zeros(MAX_BLOCKS, jnp.int32)
    return lax.fori_loop(0, MAX_BLOCKS, draw, start)[1]


def place_resources(dice: Dice, cells: Cells, exit: jax.Array) -> Cells:
    """Credits or energy on every cell but blocks and the exit."""
    everywhere = jnp.arange(CELLS)
    takes = to_mask(~cells.blocks & ~of_cell(exit))
    is_credits = choose(dice, Site.RESOURCE_IS_CREDITS, 2, everywhere) == 0
    drawn = choose(dice, Site.RESOURCE_AMOUNT, len(_AMOUNT), everywhere)
    amount = jnp.where(takes, jnp.asarray(_AMOUNT)[drawn], 0).astype(jnp.int8)
    return replace(
        cells,
        credits=jnp.where(is_credits, amount, 0),
        energy=jnp.where(is_credits, 0, amount),
    )
