"""The coming enemy turn, as far as the player can foresee it."""

from functools import lru_cache

from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.foresight.cell_sets import ALL, BIT, NEXT_TO, first_step, members
from hackmatrix.game.foresight.visible_state import VisibleEnemy, VisibleState, unknown_enemy
from hackmatrix.game.rules.board import NEIGHBOURS
from hackmatrix.game.rules.enemies import STEPS_PER_TURN, EnemyType


def enemy_turn(visible: VisibleState) -> VisibleState:
    """The board as the player would see it after the coming enemy turn.

    Enemies hit or come nearer (section 5), in list order, which the game draws. Transmissions that
    will spawn and cryptogs out of sight are unknown.
    """
    if visible.step:
        return visible._replace(step=False)
    hits, enemies = _act(visible.board.blocks, visible.cell, visible.enemies, visible.transmissions)
    return visible._replace(
        hp=max(visible.hp - hits, 0),
        enemies=enemies + tuple(map(unknown_enemy, members(visible.landing))),
        transmissions=visible.transmissions & ~visible.landing,
        landing=visible.transmissions & ~visible.landing,
    )


@lru_cache(1 << 16)  # the same turns are foreseen again and again
def _act(
    blocks: int, here: int, enemies: tuple[VisibleEnemy, ...], transmissions: int
) -> tuple[int, tuple[VisibleEnemy, ...]]:
    """The hits of an enemy turn, and the enemies after it."""
    beside, cells = NEXT_TO[here], [enemy.cell for enemy in enemies]
    to_act = [index for index, enemy in enumerate(enemies) if not enemy.stunned]
    hits = 0
    for sub_step in range(max(STEPS_PER_TURN)):
        again = []
        for index in to_act:
            enemy_type = enemies[index].type
            if beside >> cells[index] & 1:
                hits += 1
                continue
            cells[index] = _next_cell(blocks, enemy_type, index, cells, transmissions, here)
            if STEPS_PER_TURN[enemy_type] > sub_step + 1:
                again.append(index)
        to_act = again
    moved = zip(enemies, cells, strict=True)
    return hits, tuple(VisibleEnemy(enemy.type, cell, enemy.hp, False) for enemy, cell in moved)


def _next_cell(
    blocks: int, enemy_type: int, index: int, cells: list[int], transmissions: int, here: int
) -> int:
    """Where an enemy that does not hit moves to."""
    cell, occupied = cells[index], transmissions
    for other, other_cell in enumerate(cells):
        if other != index:
            occupied |= BIT[other_cell]
    open_cells = ALL if enemy_type == EnemyType.GLITCH else ALL & ~blocks
    free = open_cells & ~occupied
    step = first_step(cell, here, free)
    if step is not None:
        return step
    step = first_step(cell, here, open_cells)
    if step is not None and free >> step & 1:
        return step
    options = [to for to in NEIGHBOURS[cell] if free >> to & 1]
    return min(options, key=lambda to: manhattan(to, here), default=cell)
