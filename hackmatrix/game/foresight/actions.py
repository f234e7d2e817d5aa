"""Plays directions and siphoning out on what the player sees, without dice."""

from collections.abc import Callable
from functools import cache, lru_cache

from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.engine.programs import shift_goal
from hackmatrix.game.foresight.cell_sets import (
    ALL,
    AROUND,
    BIT,
    COL,
    CROSS,
    NEXT_TO,
    ROW,
    first_on_ray,
    first_step,
    members,
)
from hackmatrix.game.foresight.visible_state import VisibleEnemy, VisibleState, unknown_enemy
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR, NEIGHBOURS, Content
from hackmatrix.game.rules.enemies import STEPS_PER_TURN, EnemyType
from hackmatrix.game.rules.programs import EXCH_ENERGY, MAX_ATK_USES, PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP


def can_go(visible: VisibleState, direction: int) -> bool:
    """Whether the next cell is free, or holds an enemy to attack."""
    to = NEIGHBOUR[visible.cell][direction]
    if to is None:
        return False
    return not visible.board.blocks >> to & 1 or any(enemy.cell == to for enemy in visible.enemies)


def target(visible: VisibleState, direction: int) -> int | None:
    """The cell of the piece that an attack in a direction hits, at any distance."""
    pieces = visible.pieces
    cell = first_on_ray(visible.cell, direction, pieces | visible.board.blocks)
    return cell if cell is not None and pieces >> cell & 1 else None


def go(visible: VisibleState, direction: int) -> VisibleState:
    """Attacks the first piece in a direction, however far away, else walks one cell."""
    cell = target(visible, direction)
    return walk(visible, direction) if cell is None else attack(visible, cell)


def attack(visible: VisibleState, cell: int) -> VisibleState:
    """Hits the piece on a cell."""
    if visible.transmissions >> cell & 1:
        return without_transmissions(visible, BIT[cell])
    index = next(i for i, enemy in enumerate(visible.enemies) if enemy.cell == cell)
    struck = damage(visible.enemies[index], visible.attack)
    return visible._replace(enemies=visible.enemies[:index] + struck + visible.enemies[index + 1 :])


def damage(enemy: VisibleEnemy, amount: int) -> tuple[VisibleEnemy, ...]:
    """The enemy after a hit, stunned; nothing if that removes it."""
    left = enemy.hp - amount
    return (enemy._replace(hp=left, stunned=True),) if left > 0 else ()


def without_transmissions(visible: VisibleState, cells: int) -> VisibleState:
    """The same without the transmissions on some cells."""
    return visible._replace(
        transmissions=visible.transmissions & ~cells, landing=visible.landing & ~cells
    )


def walk(visible: VisibleState, direction: int) -> VisibleState:
    """Walks to the next cell and picks up a data siphon there."""
    to = NEIGHBOUR[visible.cell][direction]
    assert to is not None
    if not visible.board.data_siphons >> to & 1:
        return visible._replace(cell=to)
    board = visible.board._replace(data_siphons=visible.board.data_siphons & ~BIT[to])
    return visible._replace(cell=to, siphons=visible.siphons + 1, board=board)


def siphon(visible: VisibleState) -> VisibleState:
    """Siphons the cross around the player."""
    board, cross = visible.board, CROSS[visible.cell]
    credits = energy = spawns = 0
    owned = visible.owned
    resources, unsiphoned = dict(board.resources), dict(board.unsiphoned)
    for cell in members(cross):
        gained = resources.pop(cell, (0, 0))
        credits, energy = credits + gained[0], energy + gained[1]
        block = unsiphoned.pop(cell, None)
        if block is not None:
            spawns += block.spawn
            owned |= (block.content == Content.PROGRAM) << block.value
    board = board._replace(
        siphoned=board.siphoned | cross, resources=resources, unsiphoned=unsiphoned
    )
    return visible._replace(
        credits=visible.credits + credits,
        energy=visible.energy + energy,
        siphons=visible.siphons - 1,
        owned=owned,
        pending=visible.pending + spawns,
        board=board,
    )


# --- Plays programs out on what the player sees, where no chance decides --------------------------


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


# --- The coming enemy turn, as far as the player can foresee it -----------------------------------


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
