"""Section 8: the 23 programs. Each has a condition `can_*`, if any, and an effect."""

from collections.abc import Callable, Iterable

from hackmatrix.engine.combat import attack, damage, destroy
from hackmatrix.engine.events import Event, EventKind
from hackmatrix.engine.movement import manhattan
from hackmatrix.engine.state import Cell, Enemy, State, Transmission
from hackmatrix.rules.board import AROUND, LIMIT, SIZE, col, row
from hackmatrix.rules.chance import Site
from hackmatrix.rules.enemies import MAX_HP, EnemyType
from hackmatrix.rules.programs import (
    DELAY_TURNS,
    EXCH_ENERGY,
    MAX_ATK_USES,
    PROGRAMS,
    ProgramId,
)
from hackmatrix.rules.stages import LAST_STAGE
from hackmatrix.rules.stages import MAX_HP as PLAYER_HP


def can_run(state: State, number: int) -> bool:
    """Whether a program is owned, affordable and applicable."""
    program, player = PROGRAMS[number], state.player
    return (
        number in state.owned
        and player.credits >= program.credits
        and player.energy >= program.energy
        and APPLICABLE[ProgramId(number)](state)
    )


def run(state: State, number: int) -> int:
    """Pay for a program and run it; returns the kills that pay."""
    program = PROGRAMS[number]
    state.player.add(credits=-program.credits, energy=-program.energy)
    state.events.append(Event(EventKind.PROGRAM_RAN, piece=program.name.lower()))
    return EFFECT[ProgramId(number)](state) or 0


# --- which programs can be applied ---------------------------------------------------------------


def always(_state: State) -> bool:
    """WAIT, STEP, SIPH+."""
    return True


def can_push_or_pull(state: State) -> bool:
    """Any enemy; POLY too."""
    return bool(state.enemies)


def can_crash(state: State) -> bool:
    """Something to remove in the 8 cells around."""
    around = AROUND[state.player.cell]
    occupied = state.occupied()
    return any(state.cells[cell].is_block or cell in occupied for cell in around)


def can_warp(state: State) -> bool:
    """Any enemy or transmission."""
    return bool(state.enemies or state.transmissions)


def can_debug(state: State) -> bool:
    """An enemy on a block."""
    return bool(on_blocks(state))


def can_row(state: State) -> bool:
    """An enemy in the player's row."""
    return bool(in_row(state))


def can_col(state: State) -> bool:
    """An enemy in the player's column."""
    return bool(in_col(state))


def can_undo(state: State) -> bool:
    """A saved state."""
    return bool(state.saved)


def can_exch(state: State) -> bool:
    """Credits for it."""
    return state.player.credits >= PROGRAMS[ProgramId.EXCH].credits


def can_show(state: State) -> bool:
    """Not shown yet."""
    return not state.show


def can_reset(state: State) -> bool:
    """Hurt."""
    return state.player.hp < PLAYER_HP


def can_calm(state: State) -> bool:
    """Not calm yet."""
    return not state.calm


def can_d_bom(state: State) -> bool:
    """A daemon."""
    return bool(of_type(state, EnemyType.DAEMON))


def can_delay(state: State) -> bool:
    """Any transmission."""
    return bool(state.transmissions)


def can_anti_v(state: State) -> bool:
    """A virus."""
    return bool(of_type(state, EnemyType.VIRUS))


def can_score(state: State) -> bool:
    """Not in the last stage."""
    return state.stage < LAST_STAGE


def can_reduc(state: State) -> bool:
    """An unsiphoned block that would still spawn."""
    return any(block.spawn > 0 for block in state.unsiphoned_blocks())


def can_atk_plus(state: State) -> bool:
    """Used fewer than twice in this stage."""
    return state.atk_uses < MAX_ATK_USES


def can_hack(state: State) -> bool:
    """Any siphoned cell."""
    return any(cell.siphoned for cell in state.cells)


# --- what they do --------------------------------------------------------------------------------


def push(state: State) -> None:
    """Every enemy one cell away from the player."""
    _shift(state, away=True)


def pull(state: State) -> None:
    """Every enemy one cell towards the player."""
    _shift(state, away=False)


def _shift(state: State, *, away: bool) -> None:
    goals = [shift_goal(state, enemy.cell, away=away) for enemy in state.enemies]
    taken: set[int] = set()
    for enemy, goal in zip(state.enemies, goals, strict=True):
        if goal is not None and goal not in taken:
            taken.add(goal)
            piece = enemy.type.name.lower()
            state.events.append(Event(EventKind.ENEMY_MOVED, enemy.cell, goal, piece))
            enemy.cell = goal


def shift_goal(state: State, cell: int, *, away: bool) -> int | None:
    """Where PUSH (away) or PULL would bring an enemy; None when it has to stay."""
    here = state.player.cell
    dr = _sign(row(cell) - row(here)) * (1 if away else -1)
    dc = _sign(col(cell) - col(here)) * (1 if away else -1)
    candidates = []
    for r, c in ((dr, dc), (dr, 0), (0, dc)):
        to_row, to_col = row(cell) + r, col(cell) + c
        to = to_row * SIZE + to_col
        if (r or c) and 0 <= to_row < SIZE and 0 <= to_col < SIZE and to != here:
            candidates.append(to)
    nearness = -1 if away else 1
    return min(candidates, key=lambda to: nearness * manhattan(to, here), default=None)


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)


def crash(state: State) -> int:
    """Remove blocks, enemies and transmissions in the 8 cells around."""
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
    """Remove the enemies that share a cell: one kill, that of the first in the list."""
    kills = [destroy(state, enemy) for enemy in state.enemies_on(cell)]
    return kills[0] if kills else 0


def warp(state: State) -> int:
    """Destroy a random enemy or transmission and stand in its place."""
    options: list[Enemy | Transmission] = [*state.enemies, *state.transmissions]
    chosen = state.dice.choose(Site.WARP_TARGET, options)
    if isinstance(chosen, Enemy):
        kills = _destroy_all_on(state, chosen.cell)
    else:
        kills = attack(state, chosen)
    state.events.append(Event(EventKind.PLAYER_MOVED, state.player.cell, chosen.cell))
    state.player.cell = chosen.cell
    return kills


def poly(state: State) -> int:
    """Every enemy becomes another type and keeps the damage it has taken."""
    kills = 0
    for place, enemy in enumerate(list(state.enemies)):
        others = [kind for kind in EnemyType if kind != enemy.type]
        damage_taken = MAX_HP[enemy.type] - enemy.hp
        enemy.type = state.dice.choose(Site.POLY_TYPE, others, place)
        enemy.hp = MAX_HP[enemy.type] - damage_taken
        enemy.last = enemy.cell
        piece = enemy.type.name.lower()
        state.events.append(Event(EventKind.CHANGED_TYPE, enemy.cell, piece=piece))
        if enemy.hp <= 0:
            kills += destroy(state, enemy)
    return kills


def wait(_state: State) -> None:
    """End the turn, as `game.ends_turn` knows."""


def debug(state: State) -> int:
    """Damage to enemies on blocks."""
    return _damage_all(state, on_blocks(state), state.player.attack)


def row_(state: State) -> int:
    """Damage to enemies in the player's row."""
    return _damage_all(state, in_row(state), state.player.attack)


def col_(state: State) -> int:
    """Damage to enemies in the player's column."""
    return _damage_all(state, in_col(state), state.player.attack)


def undo(state: State) -> None:
    """Restore the newest saved state and drop it."""
    state.restore(state.saved.pop())
    state.events.append(Event(EventKind.UNDONE))


def step(state: State) -> None:
    """The next enemy turn does not happen."""
    state.step = True


def siph_plus(state: State) -> None:
    """One more data siphon."""
    state.player.add(siphons=1)


def exch(state: State) -> None:
    """Credits become energy."""
    state.player.add(energy=EXCH_ENERGY)


def show(state: State) -> None:
    """Cryptogs and the types of transmissions are visible for this stage."""
    state.show = True


def reset(state: State) -> None:
    """Full hp."""
    state.player.hp = PLAYER_HP


def calm(state: State) -> None:
    """No scheduled spawns for this stage."""
    state.calm = True


def d_bom(state: State) -> int:
    """Destroy the nearest daemon; 1 damage to enemies in the 8 cells around it."""
    here = state.player.cell
    bomb = min(of_type(state, EnemyType.DAEMON), key=lambda enemy: manhattan(enemy.cell, here))
    kills = destroy(state, bomb)
    near = [enemy for enemy in state.enemies if enemy.cell in AROUND[bomb.cell]]
    return kills + _damage_all(state, near, 1)


def delay(state: State) -> None:
    """Every transmission takes longer."""
    for transmission in state.transmissions:
        transmission.turns = min(transmission.turns + DELAY_TURNS, LIMIT)


def anti_v(state: State) -> int:
    """1 damage to every virus."""
    return _damage_all(state, of_type(state, EnemyType.VIRUS), 1)


def score(state: State) -> None:
    """Points for the stages still to come."""
    state.player.add(score=LAST_STAGE - state.stage)


def reduc(state: State) -> None:
    """Every unsiphoned block spawns one less."""
    for block in state.unsiphoned_blocks():
        block.spawn = max(block.spawn - 1, 0)


def atk_plus(state: State) -> None:
    """One more damage with each hit, for good."""
    state.player.attack = min(state.player.attack + 1, LIMIT)
    state.atk_uses += 1


def hack(state: State) -> int:
    """Damage to enemies on siphoned cells."""
    siphoned = [enemy for enemy in state.enemies if state.cells[enemy.cell].siphoned]
    return _damage_all(state, siphoned, state.player.attack)


def _damage_all(state: State, enemies: Iterable[Enemy], amount: int) -> int:
    return sum(damage(state, enemy, amount) for enemy in enemies)


# --- whom they strike ----------------------------------------------------------------------------


def on_blocks(state: State) -> list[Enemy]:
    """Enemies standing on a block."""
    return [enemy for enemy in state.enemies if state.cells[enemy.cell].is_block]


def in_row(state: State) -> list[Enemy]:
    """Enemies in the player's row."""
    return [enemy for enemy in state.enemies if row(enemy.cell) == row(state.player.cell)]


def in_col(state: State) -> list[Enemy]:
    """Enemies in the player's column."""
    return [enemy for enemy in state.enemies if col(enemy.cell) == col(state.player.cell)]


def of_type(state: State, kind: EnemyType) -> list[Enemy]:
    """Enemies of one type."""
    return [enemy for enemy in state.enemies if enemy.type == kind]


APPLICABLE: dict[ProgramId, Callable[[State], bool]] = {
    ProgramId.PUSH: can_push_or_pull,
    ProgramId.PULL: can_push_or_pull,
    ProgramId.CRASH: can_crash,
    ProgramId.WARP: can_warp,
    ProgramId.POLY: can_push_or_pull,
    ProgramId.WAIT: always,
    ProgramId.DEBUG: can_debug,
    ProgramId.ROW: can_row,
    ProgramId.COL: can_col,
    ProgramId.UNDO: can_undo,
    ProgramId.STEP: always,
    ProgramId.SIPH_PLUS: always,
    ProgramId.EXCH: can_exch,
    ProgramId.SHOW: can_show,
    ProgramId.RESET: can_reset,
    ProgramId.CALM: can_calm,
    ProgramId.D_BOM: can_d_bom,
    ProgramId.DELAY: can_delay,
    ProgramId.ANTI_V: can_anti_v,
    ProgramId.SCORE: can_score,
    ProgramId.REDUC: can_reduc,
    ProgramId.ATK_PLUS: can_atk_plus,
    ProgramId.HACK: can_hack,
}

EFFECT: dict[ProgramId, Callable[[State], int | None]] = {
    ProgramId.PUSH: push,
    ProgramId.PULL: pull,
    ProgramId.CRASH: crash,
    ProgramId.WARP: warp,
    ProgramId.POLY: poly,
    ProgramId.WAIT: wait,
    ProgramId.DEBUG: debug,
    ProgramId.ROW: row_,
    ProgramId.COL: col_,
    ProgramId.UNDO: undo,
    ProgramId.STEP: step,
    ProgramId.SIPH_PLUS: siph_plus,
    ProgramId.EXCH: exch,
    ProgramId.SHOW: show,
    ProgramId.RESET: reset,
    ProgramId.CALM: calm,
    ProgramId.D_BOM: d_bom,
    ProgramId.DELAY: delay,
    ProgramId.ANTI_V: anti_v,
    ProgramId.SCORE: score,
    ProgramId.REDUC: reduc,
    ProgramId.ATK_PLUS: atk_plus,
    ProgramId.HACK: hack,
}
