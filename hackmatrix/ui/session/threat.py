"""The threat layer: hits that the enemies in sight can deal at their next turn."""

from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.rules.board import CELLS, NEIGHBOURS
from hackmatrix.game.rules.enemies import STEPS_PER_TURN, EnemyType


def threat(seen: State) -> list[int]:
    """For each cell, the most hits that a player there can take at the next enemy turn.

    Enemies may stand in each other's way, so it can be fewer. What lands or spawns at that turn
    rests, so it adds nothing. 0 on blocks, and on cells of enemies but the player's own.

    Args:
        seen: what the player sees, see `copying.seen_copy`.
    """
    if seen.step:
        return [0] * CELLS
    reach = [_reach(seen, enemy) for enemy in seen.enemies]
    closed = (seen.blocks() | {enemy.cell for enemy in seen.enemies}) - {seen.player.cell}
    return [0 if c in closed else sum(c in cells for cells in reach) for c in range(CELLS)]


def _reach(seen: State, enemy: Enemy) -> set[int]:
    """The cells on which this enemy could hit the player at its next turn."""
    if enemy.disabled or enemy.stunned:
        return set()
    walls = set() if enemy.type == EnemyType.GLITCH else seen.blocks()
    stands = {enemy.cell}
    for _ in range(STEPS_PER_TURN[enemy.type] - 1):
        stands |= {cell for stand in stands for cell in NEIGHBOURS[stand] if cell not in walls}
    return {cell for stand in stands for cell in NEIGHBOURS[stand]}
