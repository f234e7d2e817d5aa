"""Plays programs out on what the player sees, where no chance decides."""

from collections.abc import Callable
from functools import cache

from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.engine.programs import shift_goal
from hackmatrix.game.foresight.actions import damaged, without_transmissions
from hackmatrix.game.foresight.cell_sets import AROUND, BIT, COL, ROW
from hackmatrix.game.foresight.seen import Seen, VisibleEnemy
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import EXCH_ENERGY, MAX_ATK_USES, PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP


def run(visible: Seen, program: ProgramId) -> Seen | None:
    """Pays for one of `EFFECTS` and runs it; None if it can't run, or would change nothing."""
    _, credits, energy, _ = PROGRAMS[program]
    if not visible.owned >> program & 1 or visible.credits < credits or visible.energy < energy:
        return None
    paid = visible._replace(credits=visible.credits - credits, energy=visible.energy - energy)
    return EFFECTS[program](paid)


def _strike(visible: Seen, is_struck: Callable[[VisibleEnemy], object], amount: int) -> Seen | None:
    """Damages the enemies that are struck; None if there is none."""
    enemies: list[VisibleEnemy] = []
    anyone = False
    for enemy in visible.enemies:
        if is_struck(enemy):
            enemies += damaged(enemy, amount)
            anyone = True
        else:
            enemies.append(enemy)
    return visible._replace(enemies=tuple(enemies)) if anyone else None


def _on(cells: int) -> Callable[[VisibleEnemy], object]:
    return lambda enemy: cells >> enemy.cell & 1


def _d_bom(visible: Seen) -> Seen | None:
    daemons = [enemy for enemy in visible.enemies if enemy.kind == EnemyType.DAEMON]
    if not daemons:
        return None
    nearest = min(daemons, key=lambda enemy: manhattan(enemy.cell, visible.cell))
    place = visible.enemies.index(nearest)
    left = visible._replace(enemies=visible.enemies[:place] + visible.enemies[place + 1 :])
    return _strike(left, _on(AROUND[nearest.cell]), 1) or left


def _crash(visible: Seen) -> Seen | None:
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


def _shift(visible: Seen, *, away: bool) -> Seen | None:
    """PUSH (away) and PULL; an enemy stays where another took its goal before it."""
    goals, taken = shift_goals(visible.cell, away=away), 0
    enemies = []
    for enemy in visible.enemies:
        to = goals[enemy.cell]
        if to != enemy.cell and not taken >> to & 1:
            taken |= BIT[to]
            enemy = enemy._replace(cell=to)
        enemies.append(enemy)
    return visible._replace(enemies=tuple(enemies)) if enemies else None


Effect = Callable[[Seen], Seen | None]  # None: it would change nothing

# Not among them: POLY and WARP, a matter of luck; UNDO, of the past; SCORE and REDUC, of numbers
# that are not seen here.
EFFECTS: dict[ProgramId, Effect] = {
    ProgramId.PUSH: lambda seen: _shift(seen, away=True),
    ProgramId.PULL: lambda seen: _shift(seen, away=False),
    ProgramId.CRASH: _crash,
    ProgramId.WAIT: lambda seen: seen,
    ProgramId.DEBUG: lambda seen: _strike(seen, _on(seen.board.blocks), seen.attack),
    ProgramId.ROW: lambda seen: _strike(seen, _on(ROW[seen.cell]), seen.attack),
    ProgramId.COL: lambda seen: _strike(seen, _on(COL[seen.cell]), seen.attack),
    ProgramId.STEP: lambda seen: None if seen.step else seen._replace(step=True),
    ProgramId.SIPH_PLUS: lambda seen: seen._replace(siphons=seen.siphons + 1),
    ProgramId.EXCH: lambda seen: seen._replace(energy=seen.energy + EXCH_ENERGY),
    ProgramId.SHOW: lambda seen: None if seen.show else seen._replace(show=True),
    ProgramId.RESET: lambda seen: seen._replace(hp=PLAYER_HP) if seen.hp < PLAYER_HP else None,
    ProgramId.CALM: lambda seen: None if seen.calm else seen._replace(calm=True),
    ProgramId.D_BOM: _d_bom,
    ProgramId.DELAY: lambda seen: seen._replace(landing=0) if seen.transmissions else None,
    ProgramId.ANTI_V: lambda seen: _strike(seen, lambda enemy: enemy.kind == EnemyType.VIRUS, 1),
    ProgramId.ATK_PLUS: lambda seen: (
        seen._replace(attack=seen.attack + 1, atk_uses=seen.atk_uses + 1)
        if seen.atk_uses < MAX_ATK_USES
        else None
    ),
    ProgramId.HACK: lambda seen: _strike(seen, _on(seen.board.siphoned), seen.attack),
}
