"""Section 8: the 23 programs. Similar ones share a function; UNDO is in `undo.py`."""

from collections.abc import Callable

from hackmatrix.game.engine.combat import attack, damage, destroy
from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.engine.state import Cell, Enemy, State, Transmission, saturate
from hackmatrix.game.engine.undo import restore
from hackmatrix.game.rules.board import AROUND, SIZE, col, row
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import (
    DELAY_TURNS,
    EXCH_ENERGY,
    MAX_ATK_USES,
    PROGRAMS,
    ProgramId,
)
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP


def can_run(state: State, index: int) -> bool:
    """Whether a program is owned, affordable and applicable."""
    program, player = PROGRAMS[index], state.player
    return (
        index in state.owned
        and player.credits >= program.credits
        and player.energy >= program.energy
        and applicable(state, ProgramId(index))
    )


def applicable(state: State, program: ProgramId) -> bool:
    """Whether a program's own condition holds, apart from owning and affording it."""
    condition = _CONDITIONS.get(program)
    return condition is None or bool(condition(state))


def run(state: State, index: int) -> int:
    """Pays for a program and runs it; returns the kills that give a reward."""
    program = ProgramId(index)
    pay(state, program)
    match program:
        case ProgramId.PUSH | ProgramId.PULL:
            shift(state, away=program == ProgramId.PUSH)
        case ProgramId.CRASH:
            return crash(state)
        case ProgramId.WARP:
            return warp(state)
        case ProgramId.POLY:
            return poly(state)
        case ProgramId.UNDO:
            restore(state)
        case _ if program in _STRIKES:
            return strike(state, program)
        case _:
            change_numbers(state, program)
    return 0


def pay(state: State, program: ProgramId) -> None:
    """Pay the cost of a program."""
    name, credits, energy, _ = PROGRAMS[program]
    state.player.add(credits=-credits, energy=-energy)
    state.events.append(Event(EventKind.PROGRAM_RAN, piece=name.lower()))


# --- programs that change numbers and flags alone ------------------------------------------------


def change_numbers(state: State, program: ProgramId) -> None:
    """Runs such a program. WAIT changes nothing: it only ends the turn, see `game.ends_turn`."""
    player = state.player
    match program:
        case ProgramId.STEP:
            state.step = True
        case ProgramId.SIPH_PLUS:
            player.add(siphons=1)
        case ProgramId.EXCH:
            player.add(energy=EXCH_ENERGY)
        case ProgramId.SHOW:
            state.show = True
        case ProgramId.RESET:
            player.hp = PLAYER_HP
        case ProgramId.CALM:
            state.calm = True
        case ProgramId.DELAY:
            for transmission in state.transmissions:
                transmission.turns = saturate(transmission.turns + DELAY_TURNS)
        case ProgramId.SCORE:
            player.add(score=LAST_STAGE - state.stage)
        case ProgramId.REDUC:
            for block in state.unsiphoned_blocks():
                block.spawn = max(block.spawn - 1, 0)
        case ProgramId.ATK_PLUS:
            player.attack = saturate(player.attack + 1)
            state.atk_uses += 1


# --- programs that damage enemies ----------------------------------------------------------------


def strike(state: State, program: ProgramId) -> int:
    """DEBUG, ROW, COL, D_BOM, ANTI-V and HACK; returns the kills that give a reward."""
    kills, struck = 0, _STRIKES[program](state)
    if program == ProgramId.D_BOM:
        kills = destroy(state, nearest_daemon(state))
    is_weak = program in (ProgramId.D_BOM, ProgramId.ANTI_V)
    amount = 1 if is_weak else state.player.attack
    return kills + sum(damage(state, enemy, amount) for enemy in struck)


def _on_blocks(state: State) -> list[Enemy]:
    """The enemies that DEBUG strikes."""
    return [enemy for enemy in state.enemies if state.cells[enemy.cell].is_block]


def _in_row(state: State) -> list[Enemy]:
    """The enemies that ROW strikes."""
    return [enemy for enemy in state.enemies if row(enemy.cell) == row(state.player.cell)]


def _in_col(state: State) -> list[Enemy]:
    """The enemies that COL strikes."""
    return [enemy for enemy in state.enemies if col(enemy.cell) == col(state.player.cell)]


def _around_daemon(state: State) -> list[Enemy]:
    """The enemies that D_BOM strikes besides the destroyed daemon."""
    around = AROUND[nearest_daemon(state).cell]
    return [enemy for enemy in state.enemies if enemy.cell in around]


def _on_siphoned(state: State) -> list[Enemy]:
    """The enemies that HACK strikes."""
    return [enemy for enemy in state.enemies if state.cells[enemy.cell].siphoned]


def nearest_daemon(state: State) -> Enemy:
    """The daemon nearest to the player; the first in the list on a tie."""
    here = state.player.cell
    daemons = state.enemies_of_type(EnemyType.DAEMON)
    return min(daemons, key=lambda enemy: manhattan(enemy.cell, here))


# --- programs that move or change pieces ---------------------------------------------------------


def poly(state: State) -> int:
    """POLY: every enemy becomes another type and keeps its damage; returns the rewarded kills."""
    kills = 0
    for index, enemy in enumerate(list(state.enemies)):
        others = [other for other in EnemyType if other != enemy.type]
        damage_taken = MAX_HP[enemy.type] - enemy.hp
        enemy.type = state.dice.choose(Site.POLY_TYPE, others, index)
        enemy.hp = MAX_HP[enemy.type] - damage_taken
        enemy.last = enemy.cell
        piece = enemy.type.name.lower()
        state.events.append(Event(EventKind.CHANGED_TYPE, enemy.cell, piece=piece))
        if enemy.hp <= 0:
            kills += destroy(state, enemy)
    return kills


def warp(state: State) -> int:
    """WARP: destroys a random enemy or transmission and takes its cell.

    Returns the rewarded kills.
    """
    options: list[Enemy | Transmission] = [*state.enemies, *state.transmissions]
    chosen = state.dice.choose(Site.WARP_TARGET, options)
    if isinstance(chosen, Enemy):
        kills = _destroy_all_on(state, chosen.cell)
    else:
        kills = attack(state, chosen)
    state.events.append(Event(EventKind.PLAYER_MOVED, state.player.cell, chosen.cell))
    state.player.cell = chosen.cell
    return kills


def crash(state: State) -> int:
    """CRASH: clears the 8 cells around of blocks and pieces; returns the rewarded kills."""
    kills = 0
    for cell in AROUND[state.player.cell]:
        old = state.cells[cell]
        if old.is_block:
            state.cells[cell] = Cell(
                credits=old.credits, energy=old.energy, siphoned=old.siphoned, center=old.center
            )
            state.events.append(Event(EventKind.BLOCK_REMOVED, cell))
        kills += _destroy_all_on(state, cell)
        transmission = state.transmission_on(cell)
        if transmission is not None:
            kills += attack(state, transmission)
    return kills


def _destroy_all_on(state: State, cell: int) -> int:
    """Removes all enemies on a cell; only the first in the list counts as a kill."""
    kills = [destroy(state, enemy) for enemy in state.enemies_on(cell)]
    return kills[0] if kills else 0


def shift(state: State, *, away: bool) -> None:
    """PUSH (away) and PULL: moves every enemy one cell away from the player or towards it."""
    goals = [shift_goal(state.player.cell, enemy.cell, away=away) for enemy in state.enemies]
    occupied: set[int] = set()
    for enemy, goal in zip(state.enemies, goals, strict=True):
        if goal is not None and goal not in occupied:
            occupied.add(goal)
            piece = enemy.type.name.lower()
            state.events.append(Event(EventKind.ENEMY_MOVED, enemy.cell, goal, piece))
            enemy.cell = goal


def shift_goal(here: int, cell: int, *, away: bool) -> int | None:
    """The cell where PUSH (away) or PULL moves an enemy from `cell`; None if it has to stay.

    `here` is the player's cell.
    """
    dr = _sign(row(cell) - row(here)) * (1 if away else -1)
    dc = _sign(col(cell) - col(here)) * (1 if away else -1)
    candidates = []
    for r, c in ((dr, dc), (dr, 0), (0, dc)):
        to_row, to_col = row(cell) + r, col(cell) + c
        to = to_row * SIZE + to_col
        if (r or c) and 0 <= to_row < SIZE and 0 <= to_col < SIZE and to != here:
            candidates.append(to)
    choose = max if away else min
    return choose(candidates, key=lambda to: manhattan(to, here), default=None)


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)


# --- tables --------------------------------------------------------------------------------------

_STRIKES: dict[ProgramId, Callable[[State], list[Enemy]]] = {
    ProgramId.DEBUG: _on_blocks,
    ProgramId.ROW: _in_row,
    ProgramId.COL: _in_col,
    ProgramId.D_BOM: _around_daemon,
    ProgramId.ANTI_V: lambda state: state.enemies_of_type(EnemyType.VIRUS),
    ProgramId.HACK: _on_siphoned,
}

# Programs that are not listed are always applicable.
_CONDITIONS: dict[ProgramId, Callable[[State], object]] = {
    ProgramId.PUSH: lambda state: state.enemies,
    ProgramId.PULL: lambda state: state.enemies,
    ProgramId.CRASH: lambda state: any(
        state.cells[cell].is_block or cell in state.occupied() for cell in AROUND[state.player.cell]
    ),
    ProgramId.WARP: lambda state: state.enemies or state.transmissions,
    ProgramId.POLY: lambda state: state.enemies,
    ProgramId.DEBUG: _on_blocks,
    ProgramId.ROW: _in_row,
    ProgramId.COL: _in_col,
    ProgramId.UNDO: lambda state: state.saved,
    ProgramId.EXCH: lambda state: state.player.credits >= PROGRAMS[ProgramId.EXCH].credits,
    ProgramId.SHOW: lambda state: not state.show,
    ProgramId.RESET: lambda state: state.player.hp < PLAYER_HP,
    ProgramId.CALM: lambda state: not state.calm,
    ProgramId.D_BOM: lambda state: state.enemies_of_type(EnemyType.DAEMON),
    ProgramId.DELAY: lambda state: state.transmissions,
    ProgramId.ANTI_V: lambda state: state.enemies_of_type(EnemyType.VIRUS),
    ProgramId.SCORE: lambda state: state.stage < LAST_STAGE,
    ProgramId.REDUC: lambda state: any(block.spawn > 0 for block in state.unsiphoned_blocks()),
    ProgramId.ATK_PLUS: lambda state: state.atk_uses < MAX_ATK_USES,
    ProgramId.HACK: lambda state: any(cell.siphoned for cell in state.cells),
}
