"""Section 8: the 23 programs, as sets over the lists: an action runs at most one of them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame import bitboard, planes
from hackmatrix.jaxgame.bitboard import Bits, Slots, col_of, of_cell, row_of
from hackmatrix.jaxgame.combat import NOBODY, Blow
from hackmatrix.jaxgame.dice import choose
from hackmatrix.jaxgame.loops import once, repeat
from hackmatrix.jaxgame.planes import Planes, Spots
from hackmatrix.jaxgame.state import (
    TURNS_BITS,
    Cells,
    State,
    position_of,
    saturated,
    select,
    unpacked,
    with_position,
)
from hackmatrix.rules.board import SIZE
from hackmatrix.rules.chance import Site
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.programs import (
    DELAY_TURNS,
    EXCH_ENERGY,
    MAX_ATK_USES,
    MAX_SAVED_STATES,
    PROGRAMS,
    P,
)
from hackmatrix.rules.stages import LAST_STAGE
from hackmatrix.rules.stages import MAX_HP as PLAYER_HP


def can_run(state: State) -> jax.Array:
    """uint32: bit n is set if program n is owned, affordable and applicable."""
    player, conditions = state.player, applicable(state)
    bits = jnp.uint32(0)
    for number, program in enumerate(PROGRAMS):
        holds = (player.credits >= program.credits) & (player.energy >= program.energy)
        if (condition := conditions.get(P(number))) is not None:
            holds &= condition
        bits |= holds.astype(jnp.uint32) << np.uint32(number)
    return bits & state.owned


def applicable(state: State) -> dict[P, jax.Array]:
    """The condition of each program that has one, as a bool scalar."""
    player, cells, enemies = state.player, state.cells, state.enemies_at
    near = bitboard.around(of_cell(player.cell)) & (cells.blocks | enemies | state.coming_at)
    any_enemy, any_coming = state.enemies.count > 0, state.transmissions.count > 0
    return {
        P.PUSH: any_enemy,
        P.PULL: any_enemy,
        P.CRASH: near.any(),
        P.WARP: any_enemy | any_coming,
        P.POLY: any_enemy,
        P.DEBUG: (enemies & cells.blocks).any(),
        P.ROW: (enemies & bitboard.row(row_of(player.cell))).any(),
        P.COL: (enemies & bitboard.col(col_of(player.cell))).any(),
        P.UNDO: state.saved_count > 0,
        P.EXCH: player.credits >= PROGRAMS[P.EXCH].credits,
        P.SHOW: ~state.show,
        P.RESET: player.hp < PLAYER_HP,
        P.CALM: ~state.calm,
        P.D_BOM: state.enemies.of_type(EnemyType.DAEMON).any(),
        P.DELAY: any_coming,
        P.ANTI_V: state.enemies.of_type(EnemyType.VIRUS).any(),
        P.SCORE: state.stage < LAST_STAGE,
        P.REDUC: (cells.blocks & ~cells.siphoned & planes.nonzero(cells.spawn)).any(),
        P.ATK_PLUS: state.atk_uses < MAX_ATK_USES,
        P.HACK: cells.siphoned.any(),
    }


def run(state: State, newest: list[jax.Array], number: jax.Array) -> tuple[State, Blow]:
    """Pay for a program and run it.

    Args:
        state: the game.
        newest: the newest saved position, as `state.packed`.
        number: int32, the program; below 0 when the action is none.

    Returns:
        The state with everything but the blow, which is still to be dealt.
    """
    before = state
    state = pay(state, number)
    state = poly(state, number == P.POLY)
    blow = strike(state, number)
    state, blow = warp(state, blow, number == P.WARP)
    cells = crash(state.cells, before.player.cell, number == P.CRASH)
    state = shift(replace(state, cells=cells), number)
    state = change_numbers(state, number)
    state = replace(state, step=state.step | (number == P.STEP))
    return undo(state, newest, number == P.UNDO), blow


def pay(state: State, number: jax.Array) -> State:
    """Pay the cost of a program."""
    credits, energy = jnp.int32(0), jnp.int32(0)
    for n, program in enumerate(PROGRAMS):
        runs = number == n
        credits += jnp.where(runs, program.credits, 0)
        energy += jnp.where(runs, program.energy, 0)
    player = state.player
    return replace(
        state,
        player=replace(player, credits=player.credits - credits, energy=player.energy - energy),
    )


def change_numbers(state: State, number: jax.Array) -> State:
    """The programs that change numbers and flags alone."""
    player, cells, coming = state.player, state.cells, state.transmissions
    on_stage = jnp.where(number == P.SCORE, LAST_STAGE - state.stage, 0)
    reduced = cells.blocks & ~cells.siphoned & planes.nonzero(cells.spawn)
    delayed = coming.alive.where(number == P.DELAY)
    return replace(
        state,
        player=replace(
            player,
            hp=jnp.where(number == P.RESET, PLAYER_HP, player.hp),
            energy=saturated(player.energy + jnp.where(number == P.EXCH, EXCH_ENERGY, 0)),
            siphons=saturated(player.siphons + (number == P.SIPH_PLUS)),
            attack=saturated(player.attack + (number == P.ATK_PLUS)),
            score=saturated(player.score + on_stage),
        ),
        cells=replace(cells, spawn=planes.decreased(cells.spawn, reduced.where(number == P.REDUC))),
        transmissions=replace(coming, turns=_later(coming.turns, delayed)),
        show=state.show | (number == P.SHOW),
        calm=state.calm | (number == P.CALM),
        atk_uses=state.atk_uses + (number == P.ATK_PLUS),
    )


def _later(turns: Planes[Bits], where: Bits) -> Planes[Bits]:
    """The turns of some transmissions with DELAY's added; they stop at the limit, all bits set."""
    delay = tuple(where.where(jnp.bool(bool(DELAY_TURNS >> bit & 1))) for bit in range(TURNS_BITS))
    *longer, over = planes.added(turns, delay)
    return tuple(plane | over for plane in longer)


def poly(state: State, active: jax.Array) -> State:
    """Every enemy becomes another type and keeps the damage it has taken (hp may fall to 0)."""
    enemies = state.enemies
    everyone = enemies.alive.where(active)
    others = len(EnemyType) - 1

    def draw(i: jax.Array, carry: Planes[Slots]) -> Planes[Slots]:
        return planes.put(carry, Slots.only(i), choose(state.dice, Site.POLY_TYPE, others, i))

    nothing: Planes[Slots] = (NOBODY, NOBODY)
    other = repeat(jnp.where(active, enemies.count, 0), draw, nothing)
    kind = planes.increased(other, everyone & ~planes.less(other, enemies.type))
    was, becomes = (planes.equal(types, int(EnemyType.DAEMON)) for types in (enemies.type, kind))
    hp = planes.increased(enemies.hp, becomes & ~was & everyone)  # daemons have one hp more
    hp = planes.decreased(hp, was & ~becomes & everyone)
    return replace(
        state,
        enemies=replace(
            enemies,
            type=planes.mixed(everyone, kind, enemies.type),
            hp=hp,
            last=Spots(
                *(
                    planes.mixed(everyone, now, last)
                    for now, last in zip(enemies.spots, enemies.last, strict=True)
                )
            ),
        ),
    )


def strike(state: State, number: jax.Array) -> Blow:
    """The blow of all programs but WARP; POLY can leave enemies without hp."""
    enemies, coming, cells = state.enemies, state.transmissions, state.cells
    here = state.player.cell
    bomb = once(number == P.D_BOM, lambda: nearest_daemon(state).where(number == P.D_BOM))
    bombed = planes.total(enemies.spots.row, bomb) * SIZE + planes.total(enemies.spots.col, bomb)
    crash = bitboard.around(of_cell(here)).where(number == P.CRASH)
    area = cells.blocks.where(number == P.DEBUG) | cells.siphoned.where(number == P.HACK)
    area |= bitboard.row(row_of(here)).where(number == P.ROW)
    area |= bitboard.col(col_of(here)).where(number == P.COL)
    area |= bitboard.around(of_cell(bombed)).where(bomb.any())
    struck = once(number >= 0, lambda: enemies.spots.within(enemies.alive, area | crash))
    crashed = struck.where(number == P.CRASH)
    viruses = enemies.of_type(EnemyType.VIRUS).where(number == P.ANTI_V)
    one = (number == P.ANTI_V) | (number == P.D_BOM)
    return Blow(
        damaged=(struck & ~crashed) | viruses,
        amount=jnp.where(one, 1, state.player.attack),
        destroyed=bomb | crashed | (enemies.alive & ~planes.nonzero(enemies.hp)),
        uncounted=crashed & ~enemies.spots.first_of_each(crashed),
        gone=coming.spots.within(coming.alive, crash),
    )


def nearest_daemon(state: State) -> Slots:
    """The daemon nearest to the player, the first in the list among equals."""
    spots, here = state.enemies.spots, state.player.cell
    rows, cols = _apart(spots.row, row_of(here)), _apart(spots.col, col_of(here))
    distance = planes.added(rows, cols)
    return planes.smallest(distance, state.enemies.of_type(EnemyType.DAEMON)).first()


def _apart(lines: Planes[Slots], line: jax.Array) -> Planes[Slots]:
    """|difference| of rows, or of columns, to one of them."""
    everyone = Slots.full(jnp.bool(True))
    difference, below = planes.reduced(lines, everyone, line)
    return planes.increased(tuple(plane ^ below for plane in difference), below)


def warp(state: State, blow: Blow, active: jax.Array) -> tuple[State, Blow]:
    """Destroy a random enemy or transmission and stand in its place."""
    enemies, coming = state.enemies, state.transmissions
    options = jnp.maximum(enemies.count + coming.count, 1)
    chosen = choose(state.dice, Site.WARP_TARGET, options)
    is_enemy = chosen < enemies.count
    slot = chosen - enemies.count
    cell = jnp.where(is_enemy, enemies.spots.at(chosen), coming.spots.at(slot))
    on_cell = (enemies.spots.on(cell) & enemies.alive).where(is_enemy & active)
    blow = blow._replace(
        destroyed=blow.destroyed | on_cell,
        uncounted=blow.uncounted | (on_cell & ~on_cell.first()),
        gone=blow.gone | of_cell(slot).where(~is_enemy & active),
    )
    player = replace(state.player, cell=jnp.where(active, cell, state.player.cell))
    return replace(state, player=player), blow


def crash(cells: Cells, player: jax.Array, active: jax.Array) -> Cells:
    """Remove the blocks in the 8 cells around the player."""
    area = bitboard.around(of_cell(player)).where(active)
    return replace(
        cells,
        blocks=cells.blocks & ~area,
        data=cells.data & ~area,
        questions=cells.questions & ~area,
        value=planes.clear(cells.value, area),
        spawn=planes.clear(cells.spawn, area),
    )


def shift(state: State, number: jax.Array) -> State:
    """PUSH and PULL: every enemy one cell away from the player or towards it."""
    enemies = state.enemies
    active = (number == P.PUSH) | (number == P.PULL)
    goal, has_goal = once(active, lambda: shift_goal(state, away=number == P.PUSH))
    moves = once(active, lambda: goal.first_of_each(has_goal.where(active)))
    spots = Spots(
        *(planes.mixed(moves, to, now) for to, now in zip(goal, enemies.spots, strict=True))
    )
    return replace(state, enemies=replace(enemies, spots=spots))


def shift_goal(state: State, away: jax.Array) -> tuple[Spots[Slots], Slots]:
    """Where each enemy would be brought, and which of them can be.

    Away from the player row and column both change as far as the board goes; towards it too, but
    an enemy that would land on the player changes its row alone, if it can.
    """
    enemies, here = state.enemies, state.player.cell
    row, col = row_of(here), col_of(here)
    up, down = _moves(enemies.spots.row, row, away)
    right, left = _moves(enemies.spots.col, col, away)
    rows, cols = up | down, left | right

    def shifted(lines: Planes[Slots], more: Slots, less: Slots) -> Planes[Slots]:
        return planes.decreased(planes.increased(lines, more), less)

    goal = Spots(shifted(enemies.spots.row, up, down), shifted(enemies.spots.col, right, left))
    on_player = goal.on(here)
    changes = (rows & ~on_player) | (rows & cols), cols & ~on_player
    goal = Spots(
        planes.mixed(changes[0], goal.row, enemies.spots.row),
        planes.mixed(changes[1], goal.col, enemies.spots.col),
    )
    return goal, (changes[0] | changes[1]) & enemies.alive


def _moves(lines: Planes[Slots], line: jax.Array, away: jax.Array) -> tuple[Slots, Slots]:
    """Whose row (or column) goes up by one and whose goes down, away from one or towards it."""
    above, below = planes.at_least(lines, line + 1), ~planes.at_least(lines, line)
    not_last = ~planes.equal(lines, SIZE - 1)
    more = (above & not_last).where(away) | below.where(~away)
    less = (below & planes.nonzero(lines)).where(away) | above.where(~away)
    return more, less


def undo(state: State, newest: list[jax.Array], active: jax.Array) -> State:
    """Restore the newest saved position and drop it."""
    position = position_of(state)
    state = with_position(state, select(active, unpacked(newest, like=position), position))
    return replace(
        state,
        saved_count=state.saved_count - active,
        saved_newest=(state.saved_newest - active) % MAX_SAVED_STATES,
    )
