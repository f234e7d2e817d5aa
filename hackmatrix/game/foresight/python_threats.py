"""Layout `tactical`: what directions do, and the hits to expect after them."""

from dataclasses import dataclass

from hackmatrix.game.foresight.actions import attack, can_go, target, walk
from hackmatrix.game.foresight.cell_sets import BIT, CROSS, NEXT_TO, first_on_ray, neighbours
from hackmatrix.game.foresight.python_board import FeatureGroups, hits
from hackmatrix.game.foresight.visible_state import VisibleEnemy, VisibleState
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import SIZE, col, row
from hackmatrix.game.rules.enemies import STEPS_PER_TURN, EnemyType
from hackmatrix.game.rules.tactical import MAX_HITS, WINDOW


@dataclass
class _Direction:
    """The effect of a direction; all 0 where it is not valid."""

    valid: int = 0
    walks: int = 0
    transmission: int = 0
    kills: int = 0
    stuns: int = 0
    virus: int = 0
    daemon: int = 0
    glitch: int = 0
    cryptog: int = 0
    target_hp: int = 0
    target_near: int = 0
    target_acts: int = 0
    hits: int = 0
    hit: int = 0
    lethal: int = 0
    safe_cells: int = 0
    open: int = 0
    lines: int = 0
    exit: int = 0
    siphon: int = 0


def of_directions(visible: VisibleState) -> FeatureGroups:
    """The groups about directions."""
    reached = _reached_later(visible)
    directions = [_direction(visible, d, reached) for d in range(NUM_DIRECTIONS)]
    valid_hits = [go.hits for go in directions if go.valid]
    return {
        **{f"go_{name}": [getattr(go, name) for go in directions] for name in vars(directions[0])},
        "stay_hits": [min(hits(visible, visible.cell), MAX_HITS)],
        "fewest_hits": [min([*valid_hits, MAX_HITS])],
    }


def _direction(visible: VisibleState, direction: int, reached: int) -> _Direction:
    if not can_go(visible, direction):
        return _Direction()
    go, struck = _Direction(valid=1), target(visible, direction)
    if struck is None:
        after = walk(visible, direction)
        go.walks, go.siphon = 1, after.siphons - visible.siphons
        go.exit = int(after.cell == visible.board.exit)
    else:
        after = attack(visible, struck)
        go.target_near = NEXT_TO[visible.cell] >> struck & 1
        _describe(visible, struck, go)
    expected = hits(after, after.cell)
    go.hits, go.hit = min(expected, MAX_HITS), int(expected > 0)
    go.lethal = int(expected >= visible.hp)
    go.open = (NEXT_TO[after.cell] & ~visible.board.blocks).bit_count()
    go.safe_cells = (CROSS[after.cell] & ~visible.stops & ~reached).bit_count()
    go.lines = sum(_fires(visible, after.cell, d) for d in range(NUM_DIRECTIONS))
    return go


def _describe(visible: VisibleState, struck: int, go: _Direction) -> None:
    """Writes down the piece that an attack strikes."""
    if visible.transmissions >> struck & 1:
        go.transmission = 1
        return
    (enemy,) = (enemy for enemy in visible.enemies if enemy.cell == struck)
    go.kills = int(enemy.hp <= visible.attack)
    go.stuns = 1 - go.kills
    setattr(go, EnemyType(enemy.type).name.lower(), 1)
    go.target_hp, go.target_acts = enemy.hp, int(not enemy.stunned)


def _fires(visible: VisibleState, cell: int, direction: int) -> bool:
    """Whether an enemy is in the line of fire in a direction from a cell."""
    enemies = sum(BIT[enemy.cell] for enemy in visible.enemies)
    ahead = first_on_ray(cell, direction, visible.board.blocks | enemies)
    return ahead is not None and bool(enemies >> ahead & 1)


def _reached_later(visible: VisibleState) -> int:
    """Cells where an enemy may hit in the enemy turn after the coming one."""
    free, reached = ~visible.stops, neighbours(visible.transmissions)
    for enemy in visible.enemies:
        virus, at = enemy.type == EnemyType.VIRUS, BIT[enemy.cell]
        if not enemy.stunned:
            for _ in range(STEPS_PER_TURN[enemy.type]):
                at |= neighbours(at) & free
            if enemy.type == EnemyType.GLITCH:
                at |= NEXT_TO[enemy.cell] & ~visible.pieces
        reached |= neighbours(at)
        if virus:
            reached |= neighbours(neighbours(at) & free)
    return reached


_NOBODY = VisibleEnemy(-1, -1, 0, False)


def of_window(visible: VisibleState) -> FeatureGroups:
    """The groups about the cells around."""
    cells = [_at(visible.cell, rows, cols) for rows, cols in WINDOW]
    at: dict[int | None, VisibleEnemy] = {enemy.cell: enemy for enemy in visible.enemies}
    enemies = [at.get(cell, _NOBODY) for cell in cells]

    def within(members: int, beyond: int = 0) -> list[int]:
        return [beyond if cell is None else members >> cell & 1 for cell in cells]

    return {
        "cell_blocked": within(visible.board.blocks, beyond=1),
        **{
            f"cell_{enemy_type.name.lower()}": [int(enemy.type == enemy_type) for enemy in enemies]
            for enemy_type in EnemyType
        },
        "cell_stunned": [int(enemy.stunned) for enemy in enemies],
        "cell_hp": [enemy.hp for enemy in enemies],
        "cell_transmission": within(visible.transmissions),
        "cell_hits": [0 if c is None else min(hits(visible, c), MAX_HITS) for c in cells],
        "cell_reached": within(_reached_later(visible)),
    }


def _at(cell: int, rows: int, cols: int) -> int | None:
    to_row, to_col = row(cell) + rows, col(cell) + cols
    on_board = 0 <= to_row < SIZE and 0 <= to_col < SIZE
    return to_row * SIZE + to_col if on_board else None
