"""Section 4: the enemy turn, in three parts: up to the movement, one act of one enemy, the rest.

The parts are put together in `batch.py`, where games whose enemies have all acted need not wait.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame import bitboard, planes
from hackmatrix.jaxgame.bitboard import CellSet, EnemySet, col_of, of_cell, row_of
from hackmatrix.jaxgame.control_flow import compute_once
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.jaxgame.movement import (
    HITS,
    SEARCH_ALONE,
    SEARCH_ON,
    Surroundings,
    flood,
    next_cell,
)
from hackmatrix.jaxgame.planes import Coordinates
from hackmatrix.jaxgame.spawning import spawn
from hackmatrix.jaxgame.state import State, land, saturated
from hackmatrix.rules.board import CELLS
from hackmatrix.rules.chance import SCHEDULED_SPAWN, Site
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType
from hackmatrix.rules.programs import MAX_SAVED_STATES


def begin_turn(state: State, active: jax.Array, gone: CellSet) -> tuple[State, jax.Array]:
    """The turn up to the movement.

    Args:
        state: the game.
        active: bool, whether the action ended the player's turn; nothing changes otherwise.
        gone: transmissions that the action has destroyed; they are removed.

    Returns:
        The state, and bool whether the turn takes place.
    """
    runs = active & ~state.step
    state = replace(state, step=state.step & ~active, turn=saturated(state.turn + runs))
    return land_transmissions(state, runs, gone), runs


def land_transmissions(state: State, active: jax.Array, gone: CellSet) -> State:
    """Transmissions that are due become enemies while there is room; the others come nearer."""
    coming = state.transmissions
    counting = coming.alive.only_if(active) & ~gone
    later = planes.nonzero(coming.turns[1:])  # 2 turns or more
    sooner = planes.decrement(coming.turns, counting & later)
    due = counting & ~later
    turns = (sooner[0] | due, *sooner[1:])  # those that have to wait stay at 1
    enemies, coming = land(state.enemies, replace(coming, turns=turns), due, gone)
    return replace(state, enemies=enemies, transmissions=coming)


class Ground(NamedTuple):
    """What does not change while the enemies move."""

    dice: Dice
    player: jax.Array  # int32, cell
    blocks: CellSet
    coming: CellSet  # cells of transmissions
    alive: EnemySet
    glitches: EnemySet
    twice: EnemySet  # those that act in both sub-steps


class Movement(NamedTuple):
    """The movement under way; a game goes on to its second sub-step without waiting for others."""

    to_act: EnemySet  # in this sub-step
    sub_step: jax.Array  # int32
    place: jax.Array  # int32, in the order of this sub-step
    done: EnemySet  # those that have hit
    cell: Coordinates[EnemySet]
    last: Coordinates[EnemySet]
    taken: CellSet  # cells of enemies
    hp: jax.Array  # int32, of the player
    reached: CellSet  # by the flood of the enemy that is acting, if it has to go on
    alone: jax.Array  # bool, whether it searches with nobody in the way


def start_moving(state: State, active: jax.Array) -> tuple[State, Movement, Ground]:
    """Find out where all pieces are now, before the first enemy acts."""
    enemies, coming = state.enemies, state.transmissions
    (enemies_at,) = enemies.cell.cells(enemies.alive)
    (coming_at,) = coming.cell.cells(coming.alive)
    state = replace(state, enemies_at=enemies_at, coming_at=coming_at)
    resting = planes.nonzero(enemies.disabled) | enemies.stunned
    able = (enemies.alive & ~resting).only_if(active)
    nowhere, zero = of_cell(jnp.int32(CELLS)), jnp.int32(0)
    movement = Movement(
        to_act=able,
        sub_step=zero,
        place=zero,
        done=EnemySet(jnp.uint32(0)),
        cell=enemies.cell,
        last=enemies.last,
        taken=enemies_at,
        hp=state.player.hp,
        reached=nowhere,
        alone=jnp.bool(False),
    )
    ground = Ground(
        dice=state.dice,
        player=state.player.cell,
        blocks=state.cells.blocks,
        coming=coming_at,
        alive=enemies.alive,
        glitches=enemies.of_type(EnemyType.GLITCH),
        twice=able & enemies.of_type(EnemyType.VIRUS),
    )
    return state, movement, ground


def act(movement: Movement, ground: Ground) -> Movement:
    """The enemy whose turn it is hits, moves, or goes on searching; nothing if none is left."""
    acts = movement.to_act.any()
    slot = compute_once(acts, lambda: _next_enemy(movement, ground))
    chosen = EnemySet.of_slot(slot).only_if(acts)
    cell = movement.cell.at(slot)
    leaves = ~(movement.cell.on(cell) & ground.alive & ~chosen).any()
    others = movement.taken & ~of_cell(cell).only_if(leaves)
    around = Surroundings(
        cell=cell,
        player=ground.player,
        walls=ground.blocks.only_if(~(ground.glitches & chosen).any()),
        others=others | ground.coming,
        alone=movement.alone,
    )
    reached = compute_once(acts, lambda: flood(around, movement.reached))
    answer = compute_once(acts, lambda: next_cell(around, reached))

    searches = (answer == SEARCH_ON) | (answer == SEARCH_ALONE)
    acted = chosen.only_if(~searches)
    hits = acted.only_if(answer == HITS)
    moves = acted & ~hits
    in_line = (row_of(answer) == row_of(ground.player)) | (col_of(answer) == col_of(ground.player))
    is_seen = moves.only_if((answer != cell) & in_line)
    to_act, done = movement.to_act & ~acted, movement.done | hits
    next_sub_step = acted.any() & ~to_act.any() & (movement.sub_step == 0)
    return Movement(
        to_act=to_act | (ground.twice & ~done).only_if(next_sub_step),
        sub_step=movement.sub_step + next_sub_step,
        place=jnp.where(next_sub_step, 0, movement.place + acted.any()),
        done=done,
        cell=movement.cell.moved(moves, answer),
        last=movement.last.moved(is_seen, answer),
        taken=bitboard.select(moves.any(), others | of_cell(answer), movement.taken),
        hp=jnp.maximum(movement.hp - hits.any(), 0),
        reached=reached.only_if(acts & (answer == SEARCH_ON)),
        alone=acts & searches & (movement.alone | (answer == SEARCH_ALONE)),
    )


def _next_enemy(movement: Movement, ground: Ground) -> jax.Array:
    """int32: the slot of a random one of those that are to act."""
    index = movement.sub_step * MAX_ENEMIES + movement.place
    number = ground.dice.choose(Site.ENEMY_ORDER, movement.to_act.size(), index)
    return bitboard.nth_bit(movement.to_act.word, number)


def finish_turn(state: State, movement: Movement, active: jax.Array) -> State:
    """The turn from the end of the movement on, if it takes place."""
    state = replace(
        state,
        player=replace(state.player, hp=movement.hp),
        enemies=replace(state.enemies, cell=movement.cell, last=movement.last),
        enemies_at=movement.taken,
    )
    state = spawns(state, active)
    state = rest(state, active)
    return count_saved(state, active)


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
    resting = planes.nonzero(enemies.disabled).only_if(active)
    enemies = replace(
        enemies,
        disabled=planes.decrement(enemies.disabled, resting),
        stunned=enemies.stunned.only_if(~active),
    )
    return replace(state, enemies=enemies)


def count_saved(state: State, active: jax.Array) -> State:
    """Make room for the position that UNDO is to restore; the newest 4 are kept.

    It is put there by `batch.py`.
    """
    return replace(
        state,
        saved_count=jnp.minimum(state.saved_count + active, MAX_SAVED_STATES),
        saved_newest=(state.saved_newest + active) % MAX_SAVED_STATES,
    )
