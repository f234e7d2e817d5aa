"""Plays programs out on what the player sees, where no chance decides."""

from collections.abc import Callable
from functools import cache

from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.engine.programs import shift_goal
from hackmatrix.game.foresight.actions import damage, without_transmissions
from hackmatrix.game.foresight.cell_sets import AROUND, BIT, COL, ROW
from hackmatrix.game.foresight.visible_state import VisibleEnemy, VisibleState
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import EXCH_ENERGY, MAX_ATK_USES, PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP


def run(visible: VisibleState, program: ProgramId) -> VisibleState | None:
    """Pays for one of `EFFECTS` and runs it; None if it can't run, or would change nothing."""
    _, credits, energy, _ = PROGRAMS[program]
    if not visible.owned >> program & 1 or visible.credits < credits or visible.energy < energy:
        return None
    paid = visible._replace(credits=visible.credits - credits, energy=visible.energy - energy)
    return EFFECTS[program](paid)


def _strike(
    visible: VisibleState, is_struck: Callable[[VisibleEnemy], object], amount: int
) -> VisibleState | None:
    """Damages the enemies that are struck; None if there is none."""
    enemies: list[VisibleEnemy] = []
    anyone = False
    for enemy in visible.enemies:
        if is_struck(enemy):
            enemies += damage(enemy, amount)
            anyone = True
        else:
            enemies.append(enemy)
    return visible._replace(enemies=tuple(enemies)) if anyone else None


def _on(cells: int) -> Callable[[VisibleEnemy], object]:
    return lambda enemy: cells >> enemy.cell & 1


def _d_bom(visible: VisibleState) -> VisibleState | None:
    daemons = [enemy for enemy in visible.enemies if enemy.type == EnemyType.DAEMON]
    if not daemons:
        return None
    nearest = min(daemons, key=lambda enemy: manhattan(enemy.cell, visible.cell))
    index = visible.enemies.index(nearest)
    left = visible._replace(enemies=visible.enemies[:index] + visible.enemies[index + 1 :])
    return _strike(left, _on(AROUND[nearest.cell]), 1) or left


def _crash(visible: VisibleState) -> VisibleState | None:
    around, board = AROUND[visible.cell], visible.board
    enemies = tuple(enemy for enemy in visible.enemies if not around >> enemy.cell & 1)
    if len(enemies) == len(visible.enemies) and not around & (board.blocks | visible.transmissions):
        return None
    kept = {cell: block for cell, block in board.unsiphoned.items() if not around >> cell & 1}
    cleared = board._replace(blocks=board.blocks & ~around, unsiphoned=kept)
    return without_transmissions(visible._replace(enemies=enemies, board=cleared), around)


@cache
def shift_goals(here: int, *, away: bool) -> tuple[int, ...]:
    """The cell where PUSH (away) or PULL moves an enemy from each cell; its own if it stays."""
    goals = [shift_goal(here, cell, away=away) for cell in range(CELLS)]
    return tuple(cell if goal is None else goal for cell, goal in enumerate(goals))


def _shift(visible: VisibleState, *, away: bool) -> VisibleState | None:
    """PUSH (away) and PULL; an enemy stays where another took its goal before it."""
    goals, occupied = shift_goals(visible.cell, away=away), 0
    enemies = []
    for enemy in visible.enemies:
        to = goals[enemy.cell]
        if to != enemy.cell and not occupied >> to & 1:
            occupied |= BIT[to]
            enemy = enemy._replace(cell=to)
        enemies.append(enemy)
    return visible._replace(enemies=tuple(enemies)) if enemies else None


Effect = Callable[[VisibleState], VisibleState | None]  # None: it would change nothing

# Not among them: POLY and WARP, a matter of luck; UNDO, of the past; SCORE and REDUC, of numbers
# that are not seen here.
EFFECTS: dict[ProgramId, Effect] = {
    ProgramId.PUSH: lambda visible: _shift(visible, away=True),
    ProgramId.PULL: lambda visible: _shift(visible, away=False),
    ProgramId.CRASH: _crash,
    ProgramId.WAIT: lambda visible: visible,
    ProgramId.DEBUG: lambda visible: _strike(visible, _on(visible.board.blocks), visible.attack),
    ProgramId.ROW: lambda visible: _strike(visible, _on(ROW[visible.cell]), visible.attack),
    ProgramId.COL: lambda visible: _strike(visible, _on(COL[visible.cell]), visible.attack),
    ProgramId.STEP: lambda visible: None if visible.step else visible._replace(step=True),
    ProgramId.SIPH_PLUS: lambda visible: visible._replace(siphons=visible.siphons + 1),
    ProgramId.EXCH: lambda visible: visible._replace(energy=visible.energy + EXCH_ENERGY),
    ProgramId.SHOW: lambda visible: None if visible.show else visible._replace(show=True),
    ProgramId.RESET: lambda visible: (
        visible._replace(hp=PLAYER_HP) if visible.hp < PLAYER_HP else None
    ),
    ProgramId.CALM: lambda visible: None if visible.calm else visible._replace(calm=True),
    ProgramId.D_BOM: _d_bom,
    ProgramId.DELAY: lambda visible: visible._replace(landing=0) if visible.transmissions else None,
    ProgramId.ANTI_V: lambda visible: _strike(
        visible, lambda enemy: enemy.type == EnemyType.VIRUS, 1
    ),
    ProgramId.ATK_PLUS: lambda visible: (
        visible._replace(attack=visible.attack + 1, atk_uses=visible.atk_uses + 1)
        if visible.atk_uses < MAX_ATK_USES
        else None
    ),
    ProgramId.HACK: lambda visible: _strike(visible, _on(visible.board.siphoned), visible.attack),
}
