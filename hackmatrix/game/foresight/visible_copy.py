"""A state that knows only what the player sees, for the engine to play on from, and its dangers."""

from dataclasses import replace

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Enemy, Position, State, Transmission
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.cell_sets import ALL, BIT, neighbours, set_of
from hackmatrix.game.rules.board import CELLS, Content
from hackmatrix.game.rules.enemies import STEPS_PER_TURN, EnemyType


def visible_copy(state: State) -> State:
    """A copy in which all that the player does not see is blank or missing.

    Hidden cryptogs are missing; question blocks hold 0 points; enemies and transmissions have no
    origin in the schedule; types of transmissions are all the same before SHOW; there are no saved
    states and no dice. What is derived from this copy alone can't tell what is hidden.
    """
    visible = copy_state(replace(state, saved=[], dice=Dice(0, 0)))
    hide(visible)
    return visible


def hide(position: Position) -> None:
    """Blanks or takes out of a position, in place, what the player does not see."""
    position.cells = [_seen_cell(cell) for cell in position.cells]
    position.enemies = [_seen_enemy(enemy) for enemy in position.enemies if position.sees(enemy)]
    position.transmissions = [
        Transmission(piece.cell, piece.turns, piece.type if position.show else EnemyType.VIRUS)
        for piece in position.transmissions
    ]


def _seen_cell(cell: Cell) -> Cell:
    if not cell.is_block or cell.siphoned:
        return cell
    if cell.content == Content.QUESTION:
        return Cell(Content.QUESTION, center=cell.center, holds_data=True)
    cell.credits = cell.energy = 0
    return cell


def _seen_enemy(enemy: Enemy) -> Enemy:
    enemy.from_schedule = False
    enemy.last = enemy.cell
    return enemy


def threat(visible: State) -> list[int]:
    """For each cell, the most hits that a player there can take at the next enemy turn.

    Enemies may stand in each other's way, so it can be fewer. What lands or spawns at that turn
    rests, so it adds nothing. 0 on blocks, and on cells of enemies but the player's own.

    Args:
        visible: a `visible_copy`.
    """
    if visible.step:
        return [0] * CELLS
    blocks = set_of(visible.blocks())
    closed = (blocks | set_of(enemy.cell for enemy in visible.enemies)) & ~BIT[visible.player.cell]
    reach = [_reach(enemy, blocks) for enemy in visible.enemies]
    return [
        0 if closed >> cell & 1 else sum(cells >> cell & 1 for cells in reach)
        for cell in range(CELLS)
    ]


def _reach(enemy: Enemy, blocks: int) -> int:
    """The cells on which an enemy could hit the player at its next turn."""
    if enemy.disabled or enemy.stunned:
        return 0
    free = ALL if enemy.type == EnemyType.GLITCH else ~blocks
    stands = BIT[enemy.cell]
    for _ in range(STEPS_PER_TURN[enemy.type] - 1):
        stands |= neighbours(stands) & free
    return neighbours(stands)
