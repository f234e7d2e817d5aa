"""Section 4: the enemy turn."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame import bitboard
from hackmatrix.jaxgame.bitboard import neighbours, of_cell, of_cells
from hackmatrix.jaxgame.dice import choose
from hackmatrix.jaxgame.loops import repeat_while
from hackmatrix.jaxgame.movement import next_cell
from hackmatrix.jaxgame.spawning import spawn
from hackmatrix.jaxgame.state import (
    ENEMY_SLOTS,
    State,
    in_line,
    keep_transmissions,
    land,
    pick,
    position_of,
    saturated,
    slots,
    transmission_cells,
)
from hackmatrix.rules.board import CELLS
from hackmatrix.rules.chance import SCHEDULED_SPAWN, Site
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType
from hackmatrix.rules.programs import MAX_SAVED_STATES


def enemy_turn(state: State, active: jax.Array) -> State:
    """Everything that happens after an action that ends the player's turn.

    Args:
        state: the game.
        active: bool, whether the action ended the turn; nothing changes otherwise.
    """
    runs = active & ~state.step
    state = replace(
        state,
        step=state.step & ~active,
        turn=saturated(state.turn + runs),
    )
    state = land_transmissions(state, runs)
    state = move_enemies(state, runs)
    state = spawns(state, runs)
    state = rest(state, runs)
    return save(state, runs)


def land_transmissions(state: State, active: jax.Array) -> State:
    """Transmissions that are due become enemies while there is room; the others come nearer."""
    coming = state.transmissions
    due = coming.alive & (coming.turns <= 1) & active
    enemies, landed = land(state.enemies, coming, due)
    sooner = jnp.where(coming.alive & active, jnp.maximum(coming.turns - 1, 1), coming.turns)
    coming = keep_transmissions(replace(coming, turns=sooner), ~landed)
    return replace(state, enemies=enemies, transmissions=coming)


class _Movement(NamedTuple):
    """The loop over the enemies that act; sets of enemies are uint32 with a bit for each slot."""

    to_act: jax.Array  # in this sub-step
    sub_step: jax.Array  # int32
    place: jax.Array  # int32, in the order of this sub-step
    done: jax.Array  # those that have hit
    cell: jax.Array  # int8[32]
    last: jax.Array  # int8[32]
    hp: jax.Array  # int32, of the player


def move_enemies(state: State, active: jax.Array) -> State:
    """Two sub-steps; in each, the enemies that can act do so in a fresh random order.

    Both sub-steps are one loop, in which each game goes on to the second when it is done with the
    first, so that no game waits for another between them.
    """
    enemies = state.enemies
    able = enemies.alive & (enemies.disabled == 0) & ~enemies.stunned & active
    twice = slots(able & (enemies.type == EnemyType.VIRUS))
    coming = transmission_cells(state.transmissions)
    player = state.player.cell

    def wants_more(carry: _Movement) -> jax.Array:
        return carry.to_act != 0

    def act(carry: _Movement) -> _Movement:
        acts = wants_more(carry)
        left = jax.lax.population_count(carry.to_act).astype(jnp.int32)
        index = carry.sub_step * MAX_ENEMIES + carry.place
        slot = bitboard.nth_bit(carry.to_act, choose(state.dice, Site.ENEMY_ORDER, left, index))
        chosen = (slot == ENEMY_SLOTS) & acts
        chosen_bit = acts.astype(jnp.uint32) << slot.astype(jnp.uint32)

        cell = pick(carry.cell, chosen)
        hits = acts & (neighbours(of_cell(cell)) & of_cell(player)).any()
        walls = state.cells.blocks.where(pick(enemies.type, chosen) != EnemyType.GLITCH)
        others = of_cells(carry.cell, enemies.alive & ~chosen) | coming
        to = next_cell(player, cell, walls, others, acts & ~hits)
        moves = chosen & ~hits
        is_seen = moves & (to != cell) & in_line(state, to)

        to_act = carry.to_act & ~chosen_bit
        done = carry.done | jnp.where(hits, chosen_bit, jnp.uint32(0))
        next_sub_step = acts & (to_act == 0) & (carry.sub_step == 0)
        return _Movement(
            to_act=jnp.where(next_sub_step, twice & ~done, to_act),
            sub_step=carry.sub_step + next_sub_step,
            place=jnp.where(next_sub_step, 0, carry.place + acts),
            done=done,
            cell=jnp.where(moves, to, carry.cell).astype(jnp.int8),
            last=jnp.where(is_seen, to, carry.last).astype(jnp.int8),
            hp=jnp.maximum(carry.hp - hits, 0),
        )

    zero = jnp.int32(0)
    start = _Movement(
        slots(able), zero, zero, jnp.uint32(0), enemies.cell, enemies.last, state.player.hp
    )
    end = repeat_while(wants_more, act, start)
    return replace(
        state,
        player=replace(state.player, hp=end.hp),
        enemies=replace(enemies, cell=end.cell, last=end.last),
    )


def spawns(state: State, active: jax.Array) -> State:
    """The scheduled spawn of this turn, unless CALM is on, then those owed by siphoning."""
    scheduled = active & ~state.calm & (state.turn >= state.next_task)
    pending = jnp.where(active, state.pending, 0)
    first = jnp.where(scheduled, SCHEDULED_SPAWN, SCHEDULED_SPAWN + 1)
    count = scheduled + jnp.minimum(pending, CELLS)
    state = spawn(state, count, scheduled=scheduled, owed=pending > 0, first=first)
    next_task = saturated(state.turn + state.interval)
    return replace(
        state,
        next_task=jnp.where(scheduled, next_task, state.next_task),
        pending=state.pending - pending,
    )


def rest(state: State, active: jax.Array) -> State:
    """New enemies wake up, hit ones recover."""
    enemies = state.enemies
    enemies = replace(
        enemies,
        disabled=jnp.maximum(enemies.disabled - active.astype(jnp.int8), 0),
        stunned=enemies.stunned & ~active,
    )
    return replace(state, enemies=enemies)


def save(state: State, active: jax.Array) -> State:
    """Keep the position for UNDO, the newest 4."""
    newest = (state.saved_newest + active) % MAX_SAVED_STATES
    place = (jnp.arange(MAX_SAVED_STATES) == newest) & active

    def put(ring: jax.Array, value: jax.Array) -> jax.Array:
        here = place.reshape(MAX_SAVED_STATES, *(1,) * value.ndim)
        return jnp.where(here, value, ring)

    return replace(
        state,
        saved=jax.tree.map(put, state.saved, position_of(state)),
        saved_count=jnp.minimum(state.saved_count + active, MAX_SAVED_STATES),
        saved_newest=newest,
    )
