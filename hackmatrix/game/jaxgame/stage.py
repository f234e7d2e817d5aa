"""Section 9: the start of a stage."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import NOWHERE, CellSet, neighbours, of_cell
from hackmatrix.game.jaxgame.control_flow import (
    compute_once,
    for_all,
    looked_up,
    repeat,
    repeat_while,
    where,
)
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.planes import BitPlanes
from hackmatrix.game.jaxgame.spawning import spawn
from hackmatrix.game.jaxgame.state import NUM_PLANES, Cells, State, zeros
from hackmatrix.game.jaxgame.undo import forget
from hackmatrix.game.rules.board import CELLS, CORNERS, MAX_POINTS
from hackmatrix.game.rules.chance import FIRST_STAGE_SPAWN, LAYOUT_STRIDE, Site
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import (
    AMOUNT_CHANCES,
    LAYOUT_TRIES,
    MAX_BLOCKS,
    MIN_BLOCKS,
    QUESTION_CHANCES,
)

_CORNERS = bitboard.constant(CORNERS)
_SPAWN = [program.spawn for program in PROGRAMS]
_EVERY_PROGRAM = np.uint32((1 << len(PROGRAMS)) - 1)


class BoardPlan(NamedTuple):
    """The parts of a new board that are decided before its blocks are drawn."""

    dice: Dice
    exit: jax.Array  # int32
    siphons: CellSet  # cells with a data siphon
    free: CellSet  # cells where blocks may be placed
    blocks: jax.Array  # int32, their number


def plan_stage(state: State) -> BoardPlan:
    """Puts the exit in a random free corner and data siphons in the others; draws 5 to 11 blocks.

    The player's corner stays empty.
    """
    left = _CORNERS & ~of_cell(state.player.cell)
    exit = bitboard.nth(left, state.dice.choose(Site.EXIT_CORNER, left.size()))
    free = ~_CORNERS & ~(state.enemies_at | state.transmissions_at)
    count = MIN_BLOCKS + state.dice.choose(Site.BLOCK_COUNT, MAX_BLOCKS + 1 - MIN_BLOCKS)
    return BoardPlan(
        dice=state.dice,
        exit=exit,
        siphons=left & ~of_cell(exit),
        free=free,
        blocks=jnp.minimum(count, free.size()),
    )


def begin_stage(state: State, plan: BoardPlan, attempt: jax.Array) -> State:
    """Generates a new board around the pieces, which stay where they are.

    Args:
        state: the game.
        plan: the plan of its board.
        attempt: int32, the first attempt with a valid layout; `LAYOUT_TRIES` if there is none.
    """
    no, zero = jnp.zeros_like(state.show), jnp.zeros_like(state.turn)
    state = replace(
        state,
        turn=zero,
        next_task=state.interval,
        show=no,
        calm=no,
        step=no,
        atk_uses=zero,
        exit=plan.exit,
    )
    cells = place_resources(plan, place_blocks(plan, attempt))
    state = replace(forget(state), cells=for_all(cells, like=zero))
    return spawn(state, state.stage, scheduled=no, owed=no, first=FIRST_STAGE_SPAWN)


def draw_layout(plan: BoardPlan, attempt: jax.Array) -> CellSet:
    """The cells of the blocks in one attempt."""

    def add_block(i: jax.Array, blocks: CellSet) -> CellSet:
        cell = _draw_cell(plan, attempt, i, plan.free & ~blocks)
        return blocks | of_cell(cell).only_if(i < plan.blocks)

    return repeat(plan.blocks, add_block, NOWHERE)


def _draw_cell(plan: BoardPlan, attempt: jax.Array, i: jax.Array, options: CellSet) -> jax.Array:
    """int32: the cell of block i."""
    index = attempt * LAYOUT_STRIDE + i
    return bitboard.nth(options, plan.dice.choose(Site.BLOCK_CELL, options.size(), index))


def is_valid_layout(blocks: CellSet, exit: jax.Array) -> jax.Array:
    """bool: whether all free cells are connected without passing the exit and no block is enclosed.

    The flood fill starts at cell 0.
    """
    free = ~blocks
    dead_end = of_cell(exit).only_if(exit != 0)

    def wants_more(carry: tuple[CellSet, jax.Array]) -> jax.Array:
        return carry[1]

    def grow(carry: tuple[CellSet, jax.Array]) -> tuple[CellSet, jax.Array]:
        reached, _ = carry
        further = reached
        for _ in range(2):
            further |= neighbours(further & ~dead_end) & free
        return further, (further ^ reached).any()

    reached, _ = repeat_while(wants_more, grow, (of_cell(jnp.zeros_like(exit)), exit >= 0))
    walled_in = blocks & ~neighbours(free)
    return ~(reached ^ free).any() & ~walled_in.any()


class _Blocks(NamedTuple):
    """The loop state of `place_blocks`: the board so far, and the programs not yet on it."""

    blocks: CellSet
    data: CellSet
    questions: CellSet
    value: BitPlanes[CellSet]
    spawn: BitPlanes[CellSet]
    programs: jax.Array  # uint32


def place_blocks(plan: BoardPlan, attempt: jax.Array) -> Cells:
    """Places the blocks of a valid layout with their contents; none if there is no valid layout."""
    count = where(attempt < LAYOUT_TRIES, plan.blocks, 0)

    def fill_block(i: jax.Array, board: _Blocks) -> _Blocks:
        cell, content = compute_once(i < count, lambda: _draw_block(plan, attempt, i, board))
        is_data, is_question, value, spawns = content
        here = of_cell(cell).only_if(i < count)
        program = where((i < count) & ~is_data, jnp.uint32(1) << value.astype(jnp.uint32), 0)
        return _Blocks(
            blocks=board.blocks | here,
            data=board.data | here.only_if(is_data),
            questions=board.questions | here.only_if(is_question),
            value=planes.put(board.value, here, value),
            spawn=planes.put(board.spawn, here, spawns),
            programs=board.programs & ~program,
        )

    start = _Blocks(
        blocks=NOWHERE,
        data=NOWHERE,
        questions=NOWHERE,
        value=zeros("value", NOWHERE),
        spawn=zeros("spawn", NOWHERE),
        programs=jnp.uint32(_EVERY_PROGRAM),
    )
    board = repeat(count, fill_block, start)
    return Cells(
        blocks=board.blocks,
        data=board.data,
        questions=board.questions,
        siphons=plan.siphons,
        siphoned=NOWHERE,
        center=NOWHERE,
        credits=zeros("credits", NOWHERE),
        energy=zeros("energy", NOWHERE),
        value=board.value,
        spawn=board.spawn,
    )


def _draw_block(
    plan: BoardPlan, attempt: jax.Array, i: jax.Array, board: _Blocks
) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array, jax.Array]]:
    """The cell of block i; whether it is data and a question; its points or program; its spawns."""
    dice = plan.dice
    cell = _draw_cell(plan, attempt, i, plan.free & ~board.blocks)
    is_data = dice.choose(Site.BLOCK_IS_DATA, 2, i) == 0
    is_question = dice.choose(Site.BLOCK_IS_QUESTION, len(QUESTION_CHANCES), i) == 0
    points = 1 + dice.choose(Site.BLOCK_POINTS, MAX_POINTS, i)
    options = jax.lax.population_count(board.programs).astype(jnp.int32)
    program = bitboard.nth_bit(board.programs, dice.choose(Site.BLOCK_PROGRAM, options, i))
    value = where(is_data, points, program)
    return cell, (
        is_data,
        is_question,
        value,
        where(is_data, points, looked_up(_SPAWN, program)),
    )


def place_resources(plan: BoardPlan, cells: Cells) -> Cells:
    """Puts credits or energy on every cell except blocks and the exit."""
    takes = ~cells.blocks & ~of_cell(plan.exit)

    def draw() -> tuple[jax.Array, jax.Array]:
        everywhere = jax.lax.broadcasted_iota(jnp.int32, (CELLS, *takes.low.shape), 0)
        is_credits = plan.dice.choose(Site.RESOURCE_IS_CREDITS, 2, everywhere) == 0
        drawn = plan.dice.choose(Site.RESOURCE_AMOUNT, len(AMOUNT_CHANCES), everywhere)
        return is_credits, looked_up(AMOUNT_CHANCES, drawn)

    is_credits, amount = compute_once(takes.any(), draw)

    def on(mask: jax.Array) -> BitPlanes[CellSet]:
        return tuple(
            takes & bitboard.of_mask(mask & (amount >> bit & 1 == 1))
            for bit in range(NUM_PLANES["credits"])
        )

    return replace(cells, credits=on(is_credits), energy=on(~is_credits))
