"""Section 8: the 23 programs, as masks over the lists: an action runs at most one of them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import Bits, of_cell, to_mask
from hackmatrix.jaxgame.combat import Blow, no_blow
from hackmatrix.jaxgame.dice import choose
from hackmatrix.jaxgame.loops import repeat
from hackmatrix.jaxgame.state import (
    ENEMY_SLOTS,
    TRANSMISSION_SLOTS,
    Enemies,
    State,
    col_of,
    enemy_cells,
    first,
    manhattan,
    max_hp,
    pick,
    row_of,
    saturated,
    select,
    slots,
    transmission_cells,
    with_position,
)
from hackmatrix.rules.board import CELLS, LIMIT, SIZE
from hackmatrix.rules.chance import Site
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType
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

_CREDITS = np.array([program.credits for program in PROGRAMS], np.int32)
_ENERGY = np.array([program.energy for program in PROGRAMS], np.int32)
_NUMBERS = np.arange(len(PROGRAMS))


def can_run(state: State) -> jax.Array:
    """uint32: bit n is set if program n is owned, affordable and applicable."""
    player = state.player
    affordable = (player.credits >= _CREDITS) & (player.energy >= _ENERGY)
    bits = jnp.sum(affordable.astype(jnp.uint32) << _NUMBERS.astype(np.uint32), dtype=jnp.uint32)
    for number, holds in applicable(state).items():
        bits &= ~((~holds).astype(jnp.uint32) << number)
    return bits & state.owned


def applicable(state: State) -> dict[P, jax.Array]:
    """The condition of each program that has one, as a bool scalar."""
    enemies, player, blocks = state.enemies, state.player, state.cells.blocks
    here = of_cell(player.cell)
    occupied, coming = enemy_cells(enemies), transmission_cells(state.transmissions)
    any_enemy = enemies.count > 0
    unsiphoned = to_mask(blocks & ~state.cells.siphoned)
    row, col = row_of(player.cell), col_of(player.cell)
    in_row = bitboard.of_mask(row_of(jnp.arange(CELLS)) == row)
    in_col = bitboard.of_mask(col_of(jnp.arange(CELLS)) == col)
    return {
        P.PUSH: any_enemy,
        P.PULL: any_enemy,
        P.CRASH: (bitboard.around(here) & (blocks | occupied | coming)).any(),
        P.WARP: any_enemy | (state.transmissions.count > 0),
        P.POLY: any_enemy,
        P.DEBUG: (occupied & blocks).any(),
        P.ROW: (occupied & in_row).any(),
        P.COL: (occupied & in_col).any(),
        P.UNDO: state.saved_count > 0,
        P.EXCH: player.credits >= PROGRAMS[P.EXCH].credits,
        P.SHOW: ~state.show,
        P.RESET: player.hp < PLAYER_HP,
        P.CALM: ~state.calm,
        P.D_BOM: of_type(enemies, EnemyType.DAEMON).any(),
        P.DELAY: state.transmissions.count > 0,
        P.ANTI_V: of_type(enemies, EnemyType.VIRUS).any(),
        P.SCORE: state.stage < LAST_STAGE,
        P.REDUC: (unsiphoned & (state.cells.spawn > 0)).any(),
        P.ATK_PLUS: state.atk_uses < MAX_ATK_USES,
        P.HACK: state.cells.siphoned.any(),
    }


def run(state: State, number: jax.Array) -> tuple[State, Blow]:
    """Pay for a program and run it.

    Args:
        state: the game.
        number: int32, the program; below 0 when the action is none.

    Returns:
        The state with everything but the blow, which is still to be dealt.
    """
    before = state
    state = pay(state, number)
    state = poly(state, number == P.POLY)
    blow = strike(state, number)
    state, blow = warp(state, blow, number == P.WARP)
    state, blow = crash(state, blow, number == P.CRASH)
    state = shift(state, number)
    state = change_numbers(state, number)
    state = replace(state, step=state.step | (number == P.STEP))
    return undo(state, before, number == P.UNDO), blow


def pay(state: State, number: jax.Array) -> State:
    """Pay the cost of a program."""
    chosen = number == _NUMBERS
    player = replace(
        state.player,
        credits=state.player.credits - pick(jnp.asarray(_CREDITS), chosen),
        energy=state.player.energy - pick(jnp.asarray(_ENERGY), chosen),
    )
    return replace(state, player=player)


def change_numbers(state: State, number: jax.Array) -> State:
    """The programs that change numbers and flags alone."""
    player, cells, coming = state.player, state.cells, state.transmissions
    on_stage = jnp.where(number == P.SCORE, LAST_STAGE - state.stage, 0)
    reduces = to_mask(cells.blocks & ~cells.siphoned) & (number == P.REDUC) & (cells.spawn > 0)
    longer = jnp.minimum(coming.turns.astype(jnp.int32) + DELAY_TURNS, LIMIT).astype(jnp.int16)
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
        cells=replace(cells, spawn=cells.spawn - reduces.astype(jnp.int8)),
        transmissions=replace(coming, turns=jnp.where(number == P.DELAY, longer, coming.turns)),
        show=state.show | (number == P.SHOW),
        calm=state.calm | (number == P.CALM),
        atk_uses=state.atk_uses + (number == P.ATK_PLUS),
    )


def poly(state: State, active: jax.Array) -> State:
    """Every enemy becomes another type and keeps the damage it has taken (hp may fall to 0)."""
    enemies = state.enemies
    others = len(EnemyType) - 1
    other = choose(state.dice, Site.POLY_TYPE, others, ENEMY_SLOTS).astype(jnp.int8)
    new_type = other + (other >= enemies.type)
    hp = enemies.hp + max_hp(new_type) - max_hp(enemies.type)
    return replace(
        state,
        enemies=replace(
            enemies,
            type=jnp.where(active, new_type, enemies.type),
            hp=jnp.where(active, hp, enemies.hp),
            last=jnp.where(active, enemies.cell, enemies.last),
        ),
    )


def strike(state: State, number: jax.Array) -> Blow:
    """The blow of programs that damage enemies, and of POLY, which can leave them without hp."""
    enemies, here = state.enemies, state.player.cell
    bomb = nearest_daemon(state) & (number == P.D_BOM)
    bombed = around(enemies.cell, pick(enemies.cell, bomb)) & bomb.any()
    damaged = (
        ((number == P.DEBUG) & state.cells.blocks.has(enemies.cell))
        | ((number == P.ROW) & (row_of(enemies.cell) == row_of(here)))
        | ((number == P.COL) & (col_of(enemies.cell) == col_of(here)))
        | ((number == P.ANTI_V) & (enemies.type == EnemyType.VIRUS))
        | ((number == P.HACK) & state.cells.siphoned.has(enemies.cell))
        | bombed
    )
    one = (number == P.ANTI_V) | (number == P.D_BOM)
    return no_blow()._replace(
        damaged=damaged,
        amount=jnp.where(one, 1, state.player.attack),
        destroyed=bomb | (enemies.alive & (enemies.hp <= 0)),
    )


def nearest_daemon(state: State) -> jax.Array:
    """bool[32]: the daemon nearest to the player, the first in the list among equals."""
    distance = manhattan(state.enemies.cell, state.player.cell)
    rank = jnp.where(of_type(state.enemies, EnemyType.DAEMON), distance, CELLS)
    return first((rank == jnp.min(rank)) & (rank < CELLS))


def around(cell: jax.Array, center: jax.Array) -> jax.Array:
    """bool: whether cells are among the 8 around another."""
    rows, cols = abs(row_of(cell) - row_of(center)), abs(col_of(cell) - col_of(center))
    return jnp.maximum(rows, cols) == 1


def of_type(enemies: Enemies, kind: EnemyType) -> jax.Array:
    """bool[32]: the enemies of one type."""
    return enemies.alive & (enemies.type == kind)


def first_of_each(keys: jax.Array, among: jax.Array) -> jax.Array:
    """bool[32]: those among the enemies that have no earlier one with the same key (int 0..35)."""

    def look(i: jax.Array, carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        taken, firsts = carry
        key = of_cell(keys[i].astype(jnp.int32)).where(among[i])
        is_first = (key & ~taken).any()
        return taken | key, firsts | is_first.astype(jnp.uint32) << i.astype(jnp.uint32)

    nobody = jnp.zeros_like(slots(among))
    most = MAX_ENEMIES - jax.lax.clz(slots(among)).astype(jnp.int32)
    start = Bits(nobody, nobody), nobody
    firsts = repeat(most, look, start)[1]
    return (firsts >> ENEMY_SLOTS.astype(np.uint32)) & 1 == 1


def warp(state: State, blow: Blow, active: jax.Array) -> tuple[State, Blow]:
    """Destroy a random enemy or transmission and stand in its place."""
    enemies, coming = state.enemies, state.transmissions
    options = jnp.maximum(enemies.count + coming.count, 1)
    chosen = choose(state.dice, Site.WARP_TARGET, options)
    is_enemy = chosen < enemies.count
    slot = chosen - enemies.count
    cell = jnp.where(
        is_enemy,
        pick(enemies.cell, chosen == ENEMY_SLOTS),
        pick(coming.cell, slot == TRANSMISSION_SLOTS),
    )
    on_cell = enemies.alive & (enemies.cell == cell) & is_enemy & active
    blow = blow._replace(
        destroyed=blow.destroyed | on_cell,
        counted=blow.counted & ~(on_cell & ~first(on_cell)),
        gone=blow.gone | ((slot == TRANSMISSION_SLOTS) & ~is_enemy & active),
    )
    player = replace(state.player, cell=jnp.where(active, cell, state.player.cell))
    return replace(state, player=player), blow


def crash(state: State, blow: Blow, active: jax.Array) -> tuple[State, Blow]:
    """Remove blocks, enemies and transmissions in the 8 cells around."""
    area = bitboard.around(of_cell(state.player.cell)).where(active)
    cells, enemies = state.cells, state.enemies
    kept, removed = ~area, to_mask(area)
    struck = enemies.alive & area.has(enemies.cell)
    blow = blow._replace(
        destroyed=blow.destroyed | struck,
        counted=blow.counted & ~(struck & ~first_of_each(enemies.cell, struck)),
        gone=blow.gone | area.has(state.transmissions.cell),
    )
    cells = replace(
        cells,
        blocks=cells.blocks & kept,
        data=cells.data & kept,
        questions=cells.questions & kept,
        value=jnp.where(removed, 0, cells.value),
        spawn=jnp.where(removed, 0, cells.spawn),
    )
    return replace(state, cells=cells), blow


def shift(state: State, number: jax.Array) -> State:
    """PUSH and PULL: every enemy one cell away from the player or towards it."""
    enemies = state.enemies
    active = (number == P.PUSH) | (number == P.PULL)
    goal, has_goal = shift_goal(state, away=number == P.PUSH)
    moves = first_of_each(goal, has_goal & enemies.alive & active)
    cell = jnp.where(moves, goal, enemies.cell).astype(jnp.int8)
    return replace(state, enemies=replace(enemies, cell=cell))


def shift_goal(state: State, away: jax.Array) -> tuple[jax.Array, jax.Array]:
    """int32[32], bool[32]: where each enemy would be brought, and whether it can be."""
    here, cell = state.player.cell, state.enemies.cell
    sign = jnp.where(away, 1, -1)
    dr = jnp.sign(row_of(cell) - row_of(here)) * sign
    dc = jnp.sign(col_of(cell) - col_of(here)) * sign
    goal = jnp.zeros(MAX_ENEMIES, jnp.int32)
    nearness = jnp.full(MAX_ENEMIES, CELLS)
    zero = jnp.zeros_like(dr)
    for r, c in ((dr, dc), (dr, zero), (zero, dc)):
        row, col = row_of(cell) + r, col_of(cell) + c
        to = row * SIZE + col
        on_board = (row >= 0) & (row < SIZE) & (col >= 0) & (col < SIZE)
        allowed = on_board & ((r != 0) | (c != 0)) & (to != here)
        distance = jnp.where(allowed, -sign * manhattan(to, here), CELLS)
        goal = jnp.where(distance < nearness, to, goal)
        nearness = jnp.minimum(nearness, distance)
    return goal, nearness < CELLS


def undo(state: State, before: State, active: jax.Array) -> State:
    """Restore the newest saved state and drop it."""
    newest = jax.tree.map(lambda ring: ring[before.saved_newest], before.saved)
    restored = replace(
        with_position(before, newest),
        saved_count=before.saved_count - 1,
        saved_newest=(before.saved_newest - 1) % MAX_SAVED_STATES,
    )
    return select(active, restored, state)
