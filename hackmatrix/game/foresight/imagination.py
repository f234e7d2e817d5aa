"""Makes up a whole game that looks to the player exactly like a given one.

What the player does not see is drawn anew, as `jax_imagination.py` does for batches:
the dice, what question blocks hold, what transmissions become, where hidden cryptogs stand; also in
the positions saved for UNDO.
"""

import random
from dataclasses import replace

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.engine.programs import can_run
from hackmatrix.game.engine.state import Cell, Enemy, Position, State, Transmission
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.cell_sets import ALL, BIT, CROSS, first_step, neighbours, set_of
from hackmatrix.game.rules.board import AROUND, CELLS, MAX_POINTS, Content
from hackmatrix.game.rules.enemies import MAX_HP, STEPS_PER_TURN, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId

_STRAYS = 2  # steps from where a cryptog was last seen, if no cell on its way is hidden


def imagine(state: State, rng: random.Random) -> State:
    """A game that looks like this one; it depends on what the player sees and `rng` alone.

    What the player sees includes whether CRASH is valid, which tells of a hidden cryptog.
    """
    game = copy_state(replace(state, dice=Dice(rng.getrandbits(31), rng.getrandbits(32))))
    for position in (game, *game.saved):
        last_seen = sorted({e.last for e in position.enemies if not position.sees(e)})
        hide(position)
        _fill_question_blocks(position, rng)
        _choose_types(position, rng)
        for last in last_seen:
            _place_cryptog(position, last, rng)
    if can_run(state, ProgramId.CRASH) and not can_run(game, ProgramId.CRASH):
        _move_beside(game, rng)
    return game


def _move_beside(state: State, rng: random.Random) -> None:
    """Moves a hidden cryptog beside the player, where only one can be that CRASH would strike."""
    here = state.player.cell
    hidden = [enemy for enemy in state.enemies if not state.sees(enemy)]
    nearest = min(hidden, key=lambda enemy: manhattan(enemy.last, here))
    nearest.cell = rng.choice([cell for cell in AROUND[here] if not state.in_line(cell)])


def _fill_question_blocks(position: Position, rng: random.Random) -> None:
    """As a new stage fills a block that it has drawn (section 4 of the rules)."""
    for cell in position.cells:
        if cell.content != Content.QUESTION or cell.siphoned:
            continue
        cell.holds_data = rng.random() < 0.5
        if cell.holds_data:
            cell.points = cell.spawn = rng.randint(1, MAX_POINTS)
            continue
        others = (block for block in position.cells if block is not cell)
        there = {block.program for block in others if block.is_program}
        cell.program = rng.choice([n for n in range(len(PROGRAMS)) if n not in there])
        cell.spawn = PROGRAMS[cell.program].spawn


def _choose_types(position: Position, rng: random.Random) -> None:
    if not position.show:
        for piece in position.transmissions:
            piece.type = rng.choice(tuple(EnemyType))


def _place_cryptog(position: Position, last: int, rng: random.Random) -> None:
    """Puts a hidden cryptog on its way from where it was last seen, else near it, else anywhere."""
    blocks = set_of(position.blocks())
    near = BIT[last]
    for _ in range(_STRAYS):
        near |= neighbours(near) & ~blocks
    occupied = blocks | set_of(position.occupied())
    free = [cell for cell in range(CELLS) if not (occupied >> cell & 1 or position.in_line(cell))]
    for likely in (_way(position, last, blocks), near, ALL):
        if options := [cell for cell in free if likely >> cell & 1]:
            enemy_type = EnemyType.CRYPTOG
            position.enemies.append(
                Enemy(enemy_type, rng.choice(options), MAX_HP[enemy_type], last=last)
            )
            return


def _way(position: Position, last: int, blocks: int) -> int:
    """The cells from one on that an enemy alone passes out of the player's sight (section 5)."""
    here, cell, way = position.player.cell, last, BIT[last]
    while not (CROSS[here] >> cell & 1 or blocks >> here & 1):
        step = first_step(cell, here, ALL & ~blocks)
        if step is None or position.in_line(step):
            break
        cell, way = step, way | BIT[step]
    return way


# A state that knows only what the player sees, for the engine to play on from, and its dangers.


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
