"""Section 9: the start of a stage."""

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.spawning import spawn
from hackmatrix.game.engine.state import Cell, State, empty_board
from hackmatrix.game.engine.undo import forget
from hackmatrix.game.rules.board import CELLS, CORNERS, NEIGHBOURS, Content
from hackmatrix.game.rules.chance import FIRST_STAGE_SPAWN, LAYOUT_STRIDE, Site
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import (
    AMOUNT_CHANCES,
    LAYOUT_TRIES,
    MAX_BLOCKS,
    MIN_BLOCKS,
    QUESTION_CHANCES,
)


def begin_stage(state: State) -> None:
    """Generates a new board around the pieces, which stay where they are."""
    state.turn = 0
    state.next_task = state.interval
    state.show = state.calm = state.step = False
    state.atk_uses = 0
    forget(state)
    state.cells = empty_board()
    place_corners(state)
    place_blocks(state)
    place_resources(state)
    for i in range(state.stage):
        spawn(state, FIRST_STAGE_SPAWN + i)
    state.events.append(Event(EventKind.STAGE_BEGAN, amount=state.stage))


def place_corners(state: State) -> None:
    """Puts the exit in a random free corner and data siphons in the others."""
    free = [corner for corner in CORNERS if corner != state.player.cell]
    state.exit = state.dice.choose(Site.EXIT_CORNER, free)
    for corner in free:
        state.cells[corner].content = Content.EXIT if corner == state.exit else Content.SIPHON


def place_blocks(state: State) -> None:
    """Places 5 to 11 blocks in a valid layout; none if 100 tries give no valid one."""
    count = state.dice.choose(Site.BLOCK_COUNT, range(MIN_BLOCKS, MAX_BLOCKS + 1))
    on_board: set[int] = set()
    for index, cell in enumerate(choose_layout(state, count)):
        state.cells[cell] = _draw_block(state.dice, index, on_board)


def choose_layout(state: State, count: int) -> list[int]:
    """The cells of the blocks in drawing order; empty if no attempt is valid."""
    for attempt in range(LAYOUT_TRIES):
        layout = draw_layout(state, count, attempt)
        if is_valid_layout(set(layout), state.exit):
            return layout
    return []


def draw_layout(state: State, count: int, attempt: int) -> list[int]:
    """The cells of one attempt, which may be invalid; fewer than `count` if fewer are free."""
    free = set(range(CELLS)) - set(CORNERS) - state.occupied()
    layout: list[int] = []
    for nth in range(min(count, len(free))):
        options = sorted(free - set(layout))
        index = attempt * LAYOUT_STRIDE + nth
        layout.append(state.dice.choose(Site.BLOCK_CELL, options, index))
    return layout


def is_valid_layout(blocks: set[int], exit: int) -> bool:
    """Whether all free cells are connected without passing the exit, and no block is enclosed."""
    reached = [0]
    for cell in reached:  # the list grows during the loop: a flood fill
        if cell != exit or exit == 0:
            reached += [n for n in NEIGHBOURS[cell] if n not in blocks and n not in reached]
    return len(reached) == CELLS - len(blocks) and all(
        any(n not in blocks for n in NEIGHBOURS[block]) for block in blocks
    )


def _draw_block(dice: Dice, index: int, on_board: set[int]) -> Cell:
    """Draws the content of one block.

    Adds its program to `on_board`, which are never drawn again.
    """
    is_data = dice.choose(Site.BLOCK_IS_DATA, (True, False), index)
    is_question = dice.choose(Site.BLOCK_IS_QUESTION, QUESTION_CHANCES, index)
    if is_data:
        points = dice.choose(Site.BLOCK_POINTS, range(1, 10), index)
        block = Cell(Content.DATA, points=points, spawn=points)
    else:
        left = [program for program in range(len(PROGRAMS)) if program not in on_board]
        program = dice.choose(Site.BLOCK_PROGRAM, left, index)
        on_board.add(program)
        block = Cell(Content.PROGRAM, program=program, spawn=PROGRAMS[program].spawn)
    if is_question:
        block.content = Content.QUESTION
        block.holds_data = is_data
    return block


def place_resources(state: State) -> None:
    """Puts credits or energy on every cell except blocks and the exit."""
    for index, cell in enumerate(state.cells):
        if cell.content not in (Content.EMPTY, Content.SIPHON):
            continue
        is_credits = state.dice.choose(Site.RESOURCE_IS_CREDITS, (True, False), index)
        amount = state.dice.choose(Site.RESOURCE_AMOUNT, AMOUNT_CHANCES, index)
        if is_credits:
            cell.credits = amount
        else:
            cell.energy = amount
