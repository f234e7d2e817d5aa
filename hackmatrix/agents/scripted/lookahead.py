"""Plays actions out on a view, without dice: what the player can work out."""

from collections.abc import Callable

from hackmatrix.agents.scripted.cells import BIT, first_on_ray, set_of
from hackmatrix.agents.scripted.view import Enemy, View
from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import (
    AROUND,
    CELLS,
    CROSS,
    NEIGHBOUR,
    SIZE,
    Content,
    col,
    row,
)
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import EXCH_ENERGY, MAX_ATK_USES, PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

_AROUND = tuple(map(set_of, AROUND))


# --- the player's actions ------------------------------------------------------------------------


def can_go(view: View, direction: int) -> bool:
    """Whether the next cell is free, or holds an enemy to attack."""
    to = NEIGHBOUR[view.cell][direction]
    if to is None:
        return False
    return not view.board.blocks >> to & 1 or any(enemy.cell == to for enemy in view.enemies)


def go(view: View, direction: int) -> View:
    """Attacks the first piece in a direction, however far away, else walks one cell."""
    pieces = view.transmissions
    for enemy in view.enemies:
        pieces |= BIT[enemy.cell]
    target = first_on_ray(view.cell, direction, pieces | view.board.blocks)
    if target is not None and pieces >> target & 1:
        return attack(view, target)
    return walk(view, direction)


def attack(view: View, target: int) -> View:
    """Hits the piece on a cell."""
    if view.transmissions >> target & 1:
        return _without_transmissions(view, BIT[target])
    place = next(i for i, enemy in enumerate(view.enemies) if enemy.cell == target)
    struck = _damaged(view.enemies[place], view.attack)
    return view._replace(enemies=view.enemies[:place] + struck + view.enemies[place + 1 :])


def walk(view: View, direction: int) -> View:
    """Walks to the next cell and picks up a data siphon there."""
    to = NEIGHBOUR[view.cell][direction]
    assert to is not None
    if not view.board.data_siphons >> to & 1:
        return view._replace(cell=to)
    board = view.board._replace(data_siphons=view.board.data_siphons & ~BIT[to])
    return view._replace(cell=to, siphons=view.siphons + 1, board=board)


def siphon(view: View) -> View:
    """Siphons the cross around the player."""
    board, cross = view.board, CROSS[view.cell]
    credits = energy = spawns = 0
    owned = view.owned
    for cell in cross:
        gained = board.resources.get(cell, (0, 0))
        credits, energy = credits + gained[0], energy + gained[1]
        block = board.unsiphoned.get(cell)
        if block is not None:
            spawns += block.spawn
            owned |= (block.content == Content.PROGRAM) << block.value
    taken = set(cross)
    board = board._replace(
        siphoned=board.siphoned | set_of(cross),
        resources={cell: loot for cell, loot in board.resources.items() if cell not in taken},
        unsiphoned={cell: block for cell, block in board.unsiphoned.items() if cell not in taken},
    )
    return view._replace(
        credits=view.credits + credits,
        energy=view.energy + energy,
        siphons=view.siphons - 1,
        owned=owned,
        pending=view.pending + spawns,
        board=board,
    )


def moves(view: View) -> list[tuple[int, View]]:
    """The actions that end the turn, each with the view after it."""
    made = [(d, go(view, d)) for d in range(NUM_DIRECTIONS) if can_go(view, d)]
    if view.siphons > 0:
        made.append((SIPHON, siphon(view)))
    if view.owned >> ProgramId.WAIT & 1 and view.energy > 0:
        made.append((FIRST_PROGRAM + ProgramId.WAIT, view._replace(energy=view.energy - 1)))
    return made


def _damaged(enemy: Enemy, amount: int) -> tuple[Enemy, ...]:
    """The enemy after a hit, stunned; nothing if that removes it."""
    left = enemy.hp - amount
    return (enemy._replace(hp=left, stunned=True),) if left > 0 else ()


def _without_transmissions(view: View, cells: int) -> View:
    return view._replace(transmissions=view.transmissions & ~cells, landing=view.landing & ~cells)


# --- programs ------------------------------------------------------------------------------------


def fights(view: View) -> list[tuple[int, View]]:
    """The programs that act on the board and can run now, as actions, each with the view after it.

    POLY and WARP are a matter of luck; they are left out.
    """
    return _run(view, _FIGHTS)


def investments(view: View) -> list[tuple[int, View]]:
    """Likewise the programs that change numbers alone; SCORE and REDUC are no help."""
    return _run(view, _INVESTMENTS)


def _run(view: View, effects: "_Effects") -> list[tuple[int, View]]:
    made = []
    for program, effect in effects.items():
        _, credits, energy, _ = PROGRAMS[program]
        if view.owned >> program & 1 and view.credits >= credits and view.energy >= energy:
            paid = view._replace(credits=view.credits - credits, energy=view.energy - energy)
            after = effect(paid)
            if after is not None:
                made.append((FIRST_PROGRAM + program, after))
    return made


def _strike(view: View, struck: Callable[[Enemy], bool], amount: int) -> View | None:
    """Damages the enemies that are struck; None if there is none, as the program can't run then."""
    if not any(map(struck, view.enemies)):
        return None
    enemies: list[Enemy] = []
    for enemy in view.enemies:
        enemies += _damaged(enemy, amount) if struck(enemy) else (enemy,)
    return view._replace(enemies=tuple(enemies))


def _row(view: View) -> View | None:
    return _strike(view, lambda enemy: row(enemy.cell) == row(view.cell), view.attack)


def _col(view: View) -> View | None:
    return _strike(view, lambda enemy: col(enemy.cell) == col(view.cell), view.attack)


def _debug(view: View) -> View | None:
    blocks = view.board.blocks
    return _strike(view, lambda enemy: bool(blocks >> enemy.cell & 1), view.attack)


def _hack(view: View) -> View | None:
    siphoned = view.board.siphoned
    return _strike(view, lambda enemy: bool(siphoned >> enemy.cell & 1), view.attack)


def _anti_v(view: View) -> View | None:
    return _strike(view, lambda enemy: enemy.kind == EnemyType.VIRUS, 1)


def _d_bom(view: View) -> View | None:
    daemons = [enemy for enemy in view.enemies if enemy.kind == EnemyType.DAEMON]
    if not daemons:
        return None
    nearest = min(daemons, key=lambda enemy: manhattan(enemy.cell, view.cell))
    place = view.enemies.index(nearest)
    left = view._replace(enemies=view.enemies[:place] + view.enemies[place + 1 :])
    around = _AROUND[nearest.cell]
    return _strike(left, lambda enemy: bool(around >> enemy.cell & 1), 1) or left


def _crash(view: View) -> View | None:
    around, board = _AROUND[view.cell], view.board
    enemies = tuple(enemy for enemy in view.enemies if not around >> enemy.cell & 1)
    if len(enemies) == len(view.enemies) and not around & (board.blocks | view.transmissions):
        return None
    kept = {cell: block for cell, block in board.unsiphoned.items() if not around >> cell & 1}
    cleared = board._replace(blocks=board.blocks & ~around, unsiphoned=kept)
    return _without_transmissions(view._replace(enemies=enemies, board=cleared), around)


def _goals(cell: int, here: int) -> tuple[int, int]:
    """Where PUSH and PULL move an enemy; its own cell if they can't."""
    away_row, away_col = _sign(row(cell) - row(here)), _sign(col(cell) - col(here))
    found = []
    for sign in (1, -1):
        r, c = sign * away_row, sign * away_col
        ways = [(r, c)] + [(r, 0)] * (r != 0) + [(0, c)] * (c != 0)
        options = [(row(cell) + y) * SIZE + col(cell) + x for y, x in ways if _inside(cell, y, x)]
        options = [to for to in options if to not in (cell, here)]
        best = min(options, key=lambda to: -sign * manhattan(to, here), default=cell)
        found.append(best)
    return found[0], found[1]


def _inside(cell: int, rows: int, cols: int) -> bool:
    return 0 <= row(cell) + rows < SIZE and 0 <= col(cell) + cols < SIZE


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)


_SHIFTED = tuple(tuple(_goals(cell, here) for cell in range(CELLS)) for here in range(CELLS))


def _shift(view: View, way: int) -> View | None:
    """PUSH (way 0) and PULL (way 1); an enemy stays where another took its goal before it."""
    if not view.enemies:
        return None
    taken = 0
    enemies = []
    for enemy in view.enemies:
        to = _SHIFTED[view.cell][enemy.cell][way]
        if to != enemy.cell and not taken >> to & 1:
            taken |= BIT[to]
            enemy = enemy._replace(cell=to)
        enemies.append(enemy)
    return view._replace(enemies=tuple(enemies))


_Effects = dict[int, Callable[[View], View | None]]  # None: the program can't run

_FIGHTS: _Effects = {
    ProgramId.PUSH: lambda view: _shift(view, 0),
    ProgramId.PULL: lambda view: _shift(view, 1),
    ProgramId.CRASH: _crash,
    ProgramId.DEBUG: _debug,
    ProgramId.ROW: _row,
    ProgramId.COL: _col,
    ProgramId.STEP: lambda view: None if view.step else view._replace(step=True),
    ProgramId.D_BOM: _d_bom,
    ProgramId.DELAY: lambda view: view._replace(landing=0) if view.transmissions else None,
    ProgramId.ANTI_V: _anti_v,
    ProgramId.HACK: _hack,
}
_INVESTMENTS: _Effects = {
    ProgramId.SIPH_PLUS: lambda view: view._replace(siphons=view.siphons + 1),
    ProgramId.EXCH: lambda view: view._replace(energy=view.energy + EXCH_ENERGY),
    ProgramId.SHOW: lambda view: None if view.show else view._replace(show=True),
    ProgramId.RESET: lambda view: view._replace(hp=PLAYER_HP) if view.hp < PLAYER_HP else None,
    ProgramId.CALM: lambda view: None if view.calm else view._replace(calm=True),
    ProgramId.ATK_PLUS: lambda view: (
        view._replace(attack=view.attack + 1, atk_uses=view.atk_uses + 1)
        if view.atk_uses < MAX_ATK_USES
        else None
    ),
}
