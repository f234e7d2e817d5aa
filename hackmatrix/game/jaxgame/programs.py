"""Section 8: the 23 programs.

An action runs at most one of them, but not the same in all games of a batch. So every action calls
every function here; a program that does not run works on empty sets and changes nothing.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import (
    NOBODY,
    EnemySet,
    TransmissionSet,
    col_of,
    of_cell,
    row_of,
)
from hackmatrix.game.jaxgame.combat import Blow
from hackmatrix.game.jaxgame.control_flow import compute_once, repeat, where
from hackmatrix.game.jaxgame.movement import manhattan
from hackmatrix.game.jaxgame.planes import BitPlanes, Coordinates
from hackmatrix.game.jaxgame.state import Cells, State, saturate, zeros
from hackmatrix.game.rules.board import SIZE
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

# For POLY: the types with one hp more than the others.
_TOUGH = [enemy_type for enemy_type in EnemyType if MAX_HP[enemy_type] > min(MAX_HP)]
assert max(MAX_HP) - min(MAX_HP) == 1


def can_run(state: State) -> jax.Array:
    """uint32: bit n is set if program n is owned, affordable and applicable."""
    player, conditions = state.player, applicable(state)
    bits = jnp.uint32(0)
    for index, program in enumerate(PROGRAMS):
        holds = (player.credits >= program.credits) & (player.energy >= program.energy)
        if (condition := conditions.get(ProgramId(index))) is not None:
            holds &= condition
        bits |= holds.astype(jnp.uint32) << np.uint32(index)
    return bits & state.owned


def applicable(state: State) -> dict[ProgramId, jax.Array]:
    """The condition of each program that has one, as a bool scalar."""
    player, cells, enemies = state.player, state.cells, state.enemies_at
    near = bitboard.around(of_cell(player.cell)) & (cells.blocks | enemies | state.transmissions_at)
    any_enemy, any_coming = state.enemies.count > 0, state.transmissions.count > 0
    return {
        ProgramId.PUSH: any_enemy,
        ProgramId.PULL: any_enemy,
        ProgramId.CRASH: near.any(),
        ProgramId.WARP: any_enemy | any_coming,
        ProgramId.POLY: any_enemy,
        ProgramId.DEBUG: (enemies & cells.blocks).any(),
        ProgramId.ROW: (enemies & bitboard.row_cells(row_of(player.cell))).any(),
        ProgramId.COL: (enemies & bitboard.col_cells(col_of(player.cell))).any(),
        ProgramId.UNDO: state.saved.count > 0,
        ProgramId.EXCH: player.credits >= PROGRAMS[ProgramId.EXCH].credits,
        ProgramId.SHOW: ~state.show,
        ProgramId.RESET: player.hp < PLAYER_HP,
        ProgramId.CALM: ~state.calm,
        ProgramId.D_BOM: state.enemies.of_type(EnemyType.DAEMON).any(),
        ProgramId.DELAY: any_coming,
        ProgramId.ANTI_V: state.enemies.of_type(EnemyType.VIRUS).any(),
        ProgramId.SCORE: state.stage < LAST_STAGE,
        ProgramId.REDUC: (cells.blocks & ~cells.siphoned & planes.nonzero(cells.spawn)).any(),
        ProgramId.ATK_PLUS: state.atk_uses < MAX_ATK_USES,
        ProgramId.HACK: cells.siphoned.any(),
    }


def run(state: State, program: jax.Array) -> tuple[State, Blow]:
    """Pays for a program and runs it, except UNDO (`game.begin_step`).

    Args:
        state: the game.
        program: int32, its index; negative if the action is not a program.

    Returns:
        The state, and the blow, which is not applied yet.
    """
    before = state
    state = pay(state, program)
    state = poly(state, program == ProgramId.POLY)
    blow = strike(state, program)
    state, blow = warp(state, blow, program == ProgramId.WARP)
    cells = crash(state.cells, before.player.cell, program == ProgramId.CRASH)
    state = shift(replace(state, cells=cells), program)
    return change_numbers(state, program), blow


def pay(state: State, program: jax.Array) -> State:
    """Pays the cost of a program."""
    credits, energy = jnp.int32(0), jnp.int32(0)
    for n, cost in enumerate(PROGRAMS):
        runs = program == n
        credits += where(runs, cost.credits, 0)
        energy += where(runs, cost.energy, 0)
    player = state.player
    return replace(
        state,
        player=replace(player, credits=player.credits - credits, energy=player.energy - energy),
    )


def change_numbers(state: State, program: jax.Array) -> State:
    """Runs the programs that only change numbers and flags."""
    player, cells, coming = state.player, state.cells, state.transmissions
    on_stage = where(program == ProgramId.SCORE, LAST_STAGE - state.stage, 0)
    reduced = cells.blocks & ~cells.siphoned & planes.nonzero(cells.spawn)
    delayed = coming.alive.only_if(program == ProgramId.DELAY)
    later = compute_once(
        program == ProgramId.DELAY, lambda: _later(coming.turns, delayed), otherwise=coming.turns
    )
    return replace(
        state,
        player=replace(
            player,
            hp=where(program == ProgramId.RESET, PLAYER_HP, player.hp),
            energy=saturate(player.energy + where(program == ProgramId.EXCH, EXCH_ENERGY, 0)),
            siphons=saturate(player.siphons + (program == ProgramId.SIPH_PLUS)),
            attack=saturate(player.attack + (program == ProgramId.ATK_PLUS)),
            score=saturate(player.score + on_stage),
        ),
        cells=replace(
            cells, spawn=planes.decrement(cells.spawn, reduced.only_if(program == ProgramId.REDUC))
        ),
        transmissions=replace(coming, turns=later),
        show=state.show | (program == ProgramId.SHOW),
        calm=state.calm | (program == ProgramId.CALM),
        atk_uses=state.atk_uses + (program == ProgramId.ATK_PLUS),
        step=state.step | (program == ProgramId.STEP),
    )


def _later(
    turns: BitPlanes[TransmissionSet], delayed: TransmissionSet
) -> BitPlanes[TransmissionSet]:
    """DELAY: adds turns to some transmissions.

    They saturate at the limit, which has all bits set.
    """
    delay = tuple(
        delayed.only_if(jnp.bool(bool(DELAY_TURNS >> bit & 1))) for bit in range(len(turns))
    )
    *longer, over = planes.add(turns, delay)
    return tuple(plane | over for plane in longer)


def poly(state: State, active: jax.Array) -> State:
    """POLY: every enemy becomes another type and keeps its damage (hp may become 0)."""
    enemies = state.enemies
    everyone = enemies.alive.only_if(active)
    others = len(EnemyType) - 1

    def draw(i: jax.Array, carry: BitPlanes[EnemySet]) -> BitPlanes[EnemySet]:
        return planes.put(carry, EnemySet.of_slot(i), state.dice.choose(Site.POLY_TYPE, others, i))

    nothing: BitPlanes[EnemySet] = zeros("type", NOBODY)
    other = repeat(where(active, enemies.count, 0), draw, nothing)
    new_types = planes.increment(other, everyone & ~planes.less(other, enemies.type))
    was, becomes = (planes.one_of(types, _TOUGH) for types in (enemies.type, new_types))
    hp = planes.increment(enemies.hp, becomes & ~was & everyone)
    hp = planes.decrement(hp, was & ~becomes & everyone)
    return replace(
        state,
        enemies=replace(
            enemies,
            type=planes.select(everyone, new_types, enemies.type),
            hp=hp,
            last=Coordinates(
                *(
                    planes.select(everyone, now, last)
                    for now, last in zip(enemies.cell, enemies.last, strict=True)
                )
            ),
        ),
    )


def strike(state: State, program: jax.Array) -> Blow:
    """The blow of DEBUG, ROW, COL, D_BOM, ANTI-V, HACK and CRASH; empty for other programs.

    Enemies that POLY left without hp are destroyed too.
    """
    enemies, coming, cells = state.enemies, state.transmissions, state.cells
    here = state.player.cell
    bomb = compute_once(
        program == ProgramId.D_BOM,
        lambda: nearest_daemon(state).only_if(program == ProgramId.D_BOM),
    )
    bombed = planes.total(enemies.cell.row, bomb) * SIZE + planes.total(enemies.cell.col, bomb)
    crash = bitboard.around(of_cell(here)).only_if(program == ProgramId.CRASH)
    area = cells.blocks.only_if(program == ProgramId.DEBUG)
    area |= cells.siphoned.only_if(program == ProgramId.HACK)
    area |= bitboard.row_cells(row_of(here)).only_if(program == ProgramId.ROW)
    area |= bitboard.col_cells(col_of(here)).only_if(program == ProgramId.COL)
    area |= bitboard.around(of_cell(bombed)).only_if(bomb.any())
    struck = compute_once(program >= 0, lambda: enemies.cell.within(enemies.alive, area | crash))
    crashed = struck.only_if(program == ProgramId.CRASH)
    viruses = enemies.of_type(EnemyType.VIRUS).only_if(program == ProgramId.ANTI_V)
    one = (program == ProgramId.ANTI_V) | (program == ProgramId.D_BOM)
    return Blow(
        damaged=(struck & ~crashed) | viruses,
        amount=where(one, 1, state.player.attack),
        destroyed=bomb | crashed | (enemies.alive & ~planes.nonzero(enemies.hp)),
        uncounted=crashed & ~enemies.cell.first_on_each_cell(crashed),
        gone=coming.cell.within(coming.alive, crash),
    )


def nearest_daemon(state: State) -> EnemySet:
    """The daemon nearest to the player; the first in the list on a tie."""
    distance = manhattan(state.enemies.cell, state.player.cell)
    return planes.members_of_smallest(distance, state.enemies.of_type(EnemyType.DAEMON)).first()


def warp(state: State, blow: Blow, active: jax.Array) -> tuple[State, Blow]:
    """WARP: adds a random enemy or transmission to the blow and moves the player to its cell."""
    enemies, coming = state.enemies, state.transmissions
    options = jnp.maximum(enemies.count + coming.count, 1)
    chosen = state.dice.choose(Site.WARP_TARGET, options)
    is_enemy = chosen < enemies.count
    slot = chosen - enemies.count
    cell = where(is_enemy, enemies.cell.at(chosen), coming.cell.at(slot))
    on_cell = (enemies.cell.on(cell) & enemies.alive).only_if(is_enemy & active)
    blow = blow._replace(
        destroyed=blow.destroyed | on_cell,
        uncounted=blow.uncounted | (on_cell & ~on_cell.first()),
        gone=blow.gone | of_cell(slot).only_if(~is_enemy & active),
    )
    player = replace(state.player, cell=where(active, cell, state.player.cell))
    return replace(state, player=player), blow


def crash(cells: Cells, player: jax.Array, active: jax.Array) -> Cells:
    """CRASH: removes the blocks in the 8 cells around the player."""
    area = bitboard.around(of_cell(player)).only_if(active)
    return replace(
        cells,
        blocks=cells.blocks & ~area,
        data=cells.data & ~area,
        questions=cells.questions & ~area,
        value=planes.clear(cells.value, area),
        spawn=planes.clear(cells.spawn, area),
    )


def shift(state: State, program: jax.Array) -> State:
    """PUSH and PULL: moves every enemy one cell away from the player or towards it."""
    enemies = state.enemies
    active = (program == ProgramId.PUSH) | (program == ProgramId.PULL)
    goal, has_goal = compute_once(active, lambda: shift_goal(state, away=program == ProgramId.PUSH))
    moves = compute_once(active, lambda: goal.first_on_each_cell(has_goal.only_if(active)))
    cell = Coordinates(
        *(planes.select(moves, to, now) for to, now in zip(goal, enemies.cell, strict=True))
    )
    return replace(state, enemies=replace(enemies, cell=cell))


def shift_goal(state: State, away: jax.Array) -> tuple[Coordinates[EnemySet], EnemySet]:
    """The cell where each enemy would move, and the enemies that can move.

    Away from the player, row and column both change as far as the board allows; towards the player
    too, but an enemy that would land on the player's cell changes only its row, if it can.
    """
    enemies, here = state.enemies, state.player.cell
    row, col = row_of(here), col_of(here)
    (up, down), (right, left) = compute_once(
        state.stage > 0,  # always true
        lambda: (_moves(enemies.cell.row, row, away), _moves(enemies.cell.col, col, away)),
    )
    rows, cols = up | down, left | right

    def shifted(lines: BitPlanes[EnemySet], more: EnemySet, less: EnemySet) -> BitPlanes[EnemySet]:
        return planes.decrement(planes.increment(lines, more), less)

    goal = Coordinates(shifted(enemies.cell.row, up, down), shifted(enemies.cell.col, right, left))
    on_player = goal.on(here)
    changes = (rows & ~on_player) | (rows & cols), cols & ~on_player
    goal = Coordinates(
        planes.select(changes[0], goal.row, enemies.cell.row),
        planes.select(changes[1], goal.col, enemies.cell.col),
    )
    return goal, (changes[0] | changes[1]) & enemies.alive


def _moves(
    lines: BitPlanes[EnemySet], line: jax.Array, away: jax.Array
) -> tuple[EnemySet, EnemySet]:
    """The enemies whose row (or column) increases, and those whose decreases, by one."""
    above, below = planes.at_least(lines, line + 1), ~planes.at_least(lines, line)
    not_last = ~planes.equal(lines, SIZE - 1)
    more = (above & not_last).only_if(away) | below.only_if(~away)
    less = (below & planes.nonzero(lines)).only_if(away) | above.only_if(~away)
    return more, less
