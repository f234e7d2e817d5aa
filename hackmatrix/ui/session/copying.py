"""Copies of a state: whole ones to play on from, and ones that know only what the player sees."""

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Enemy, State, Transmission
from hackmatrix.game.engine.undo import snapshot
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.enemies import EnemyType


def copied(state: State) -> State:
    """An independent copy; its events are none."""
    dice = state.dice
    return _with_position(
        state, Dice(dice.stream, dice.episode, dice.clock), [snapshot(p) for p in state.saved]
    )


def seen_copy(state: State) -> State:
    """A copy in which all that the player does not see is blank or missing.

    Hidden cryptogs are missing; question blocks hold 0 points; enemies and transmissions have no
    origin in the schedule; types of transmissions are all the same before SHOW; there are no saved
    states and no dice. What is derived from this copy alone can't tell what is hidden.
    """
    seen = _with_position(state, Dice(0, 0), [])
    seen.cells = [_seen_cell(cell) for cell in seen.cells]
    seen.enemies = [_seen_enemy(enemy) for enemy in seen.enemies if state.sees(enemy)]
    seen.transmissions = [
        Transmission(piece.cell, piece.turns, piece.type if state.show else EnemyType.VIRUS)
        for piece in seen.transmissions
    ]
    return seen


def _with_position(state: State, dice: Dice, saved: list) -> State:  # type: ignore[type-arg]
    position = snapshot(state)
    return State(
        **{name: getattr(position, name) for name in position.__dataclass_fields__},
        dice=dice,
        exit=state.exit,
        stage=state.stage,
        interval=state.interval,
        next_task=state.next_task,
        pending=state.pending,
        step=state.step,
        saved=saved,
        over=state.over,
    )


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
