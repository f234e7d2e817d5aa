"""Section 4: the enemy turn.

It has three parts: up to the movement (`begin_turn`, `begin_movement`), one action of one enemy
(`act`), and the rest (`finish_turn`). `batch.step` combines them, so that a game whose enemies have
all acted need not wait for the others. The last step of the turn, saving for UNDO, is in `undo.py`.
"""

from dataclasses import replace
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import (
    NOBODY,
    NOWHERE,
    CellSet,
    EnemySet,
    TransmissionSet,
    col_of,
    of_cell,
    row_of,
)
from hackmatrix.game.jaxgame.control_flow import compute_once, for_all, where
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.movement import Answer, Surroundings, flood, next_cell
from hackmatrix.game.jaxgame.planes import Coordinates
from hackmatrix.game.jaxgame.spawning import spawn
from hackmatrix.game.jaxgame.state import (
    NUM_PLANES,
    Enemies,
    State,
    Transmissions,
    saturate,
)
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.chance import SCHEDULED_SPAWN, Site
from hackmatrix.game.rules.enemies import MAX_ENEMIES, MAX_HP, STEPS_PER_TURN, EnemyType

_Tree = TypeVar("_Tree")

_ACT_TWICE = [enemy_type for enemy_type in EnemyType if STEPS_PER_TURN[enemy_type] > 1]
# For each bit of hp: the types whose full hp has that bit set.
_TYPES_BY_HP_BIT = [
    [enemy_type for enemy_type in EnemyType if MAX_HP[enemy_type] >> bit & 1]
    for bit in range(NUM_PLANES["hp"])
]


def begin_turn(state: State, active: jax.Array, gone: TransmissionSet) -> tuple[State, jax.Array]:
    """Steps 1 and 2: counts the turn, unless STEP skips it, and lands transmissions.

    Args:
        state: the game.
        active: bool, whether the action ended the player's turn; nothing changes otherwise.
        gone: transmissions that the action destroyed; they are removed.

    Returns:
        The state, and bool whether the turn takes place.
    """
    runs = active & ~state.step
    state = replace(state, step=state.step & ~active, turn=saturate(state.turn + runs))
    return land_transmissions(state, runs, gone), runs


def land_transmissions(state: State, active: jax.Array, gone: TransmissionSet) -> State:
    """Counts transmissions down; those that are due become enemies while there is room."""
    coming = state.transmissions
    counting = coming.alive.only_if(active) & ~gone
    later = planes.nonzero(coming.turns[1:])  # 2 turns or more
    sooner = planes.decrement(coming.turns, counting & later)
    due = counting & ~later
    coming = replace(coming, turns=(sooner[0] | due, *sooner[1:]))  # those that must wait stay at 1

    room = MAX_ENEMIES - state.enemies.count
    next_one = bitboard.nth(due, jnp.minimum(room, due.size() - 1))  # the first without room
    landing = bitboard.select(due.size() > room, due & TransmissionSet.below(next_one), due)
    landing = compute_once(landing.any(), lambda: landing)
    enemies = _with_landed(state.enemies, coming, landing)
    return replace(state, enemies=enemies, transmissions=coming.keep(~(landing | gone)))


def _with_landed(enemies: Enemies, coming: Transmissions, landing: TransmissionSet) -> Enemies:
    """Appends the enemies that landing transmissions become."""
    hp = [planes.one_of(coming.type, kinds) for kinds in _TYPES_BY_HP_BIT]
    facts = (landing, hp, coming.cell, coming.type, coming.from_schedule, coming.from_siphon)
    everyone, hp, cell, types, from_schedule, from_siphon = jax.tree.map(
        lambda slots: slots.to_set32().shifted(enemies.count),
        planes.compress(facts, landing),
        is_leaf=planes.is_set,
    )
    return Enemies(
        count=enemies.count + landing.size(),
        cell=_both(enemies.cell, cell),
        type=_both(enemies.type, types),
        hp=_both(enemies.hp, tuple(hp)),
        disabled=(enemies.disabled[0] | everyone, *enemies.disabled[1:]),  # 1 turn
        stunned=enemies.stunned,
        from_schedule=enemies.from_schedule | from_schedule,
        from_siphon=enemies.from_siphon | from_siphon,
        last=_both(enemies.last, cell),
    )


def _both(old: _Tree, new: _Tree) -> _Tree:
    """The unions of the sets in two trees."""
    return jax.tree.map(lambda a, b: a | b, old, new, is_leaf=planes.is_set)


class Ground(NamedTuple):
    """The values that stay constant while the enemies move."""

    dice: Dice
    player: jax.Array  # int32, cell
    blocks: CellSet
    transmissions_at: CellSet
    alive: EnemySet
    glitches: EnemySet
    act_twice: EnemySet  # those that act in both sub-steps


class Movement(NamedTuple):
    """State of the movement; each game starts its second sub-step without waiting for others."""

    to_act: EnemySet  # those still to act in this sub-step
    sub_step: jax.Array  # int32, 0 or 1
    num_acted: jax.Array  # int32, how many have acted in this sub-step
    have_hit: EnemySet
    cell: Coordinates[EnemySet]  # like `Enemies.cell`
    last: Coordinates[EnemySet]  # like `Enemies.last`
    enemies_at: CellSet
    hp: jax.Array  # int32, of the player
    reached: CellSet  # cells reached by the acting enemy's flood fill, if its search continues
    alone: jax.Array  # bool, whether it searches as if there were no other pieces


def begin_movement(state: State, active: jax.Array) -> tuple[State, Movement, Ground]:
    """Step 3 before the first enemy acts: finds all pieces' cells and the enemies able to act."""
    enemies, coming = state.enemies, state.transmissions
    (enemies_at,) = enemies.cell.cells(enemies.alive)
    (transmissions_at,) = coming.cell.cells(coming.alive)
    state = replace(state, enemies_at=enemies_at, transmissions_at=transmissions_at)
    resting = planes.nonzero(enemies.disabled) | enemies.stunned
    able = (enemies.alive & ~resting).only_if(active)
    zero = jnp.int32(0)
    movement = Movement(
        to_act=able,
        sub_step=zero,
        num_acted=zero,
        have_hit=NOBODY,
        cell=enemies.cell,
        last=enemies.last,
        enemies_at=enemies_at,
        hp=state.player.hp,
        reached=NOWHERE,
        alone=jnp.bool(False),
    )
    ground = Ground(
        dice=state.dice,
        player=state.player.cell,
        blocks=state.cells.blocks,
        transmissions_at=transmissions_at,
        alive=enemies.alive,
        glitches=enemies.of_type(EnemyType.GLITCH),
        act_twice=able & enemies.of_type(*_ACT_TWICE),
    )
    return state, for_all(movement, like=active), ground


def act(movement: Movement, ground: Ground) -> Movement:
    """The current enemy hits, moves, or continues its search; changes nothing if none is left."""
    acts = movement.to_act.any()
    slot = compute_once(acts, lambda: _next_enemy(movement, ground))
    chosen = EnemySet.of_slot(slot).only_if(acts)
    cell = movement.cell.at(slot)
    leaves = ~(movement.cell.on(cell) & ground.alive & ~chosen).any()
    others = movement.enemies_at & ~of_cell(cell).only_if(leaves)
    around = Surroundings(
        cell=cell,
        player=ground.player,
        walls=ground.blocks.only_if(~(ground.glitches & chosen).any()),
        others=others | ground.transmissions_at,
        alone=movement.alone,
    )
    reached = compute_once(acts, lambda: flood(around, movement.reached))
    answer = compute_once(acts, lambda: next_cell(around, reached))

    searches = (answer == Answer.SEARCH_ON) | (answer == Answer.SEARCH_ALONE)
    acted = chosen.only_if(~searches)
    hits = acted.only_if(answer == Answer.HITS)
    moves = acted & ~hits
    in_line = (row_of(answer) == row_of(ground.player)) | (col_of(answer) == col_of(ground.player))
    is_seen = moves.only_if((answer != cell) & in_line)
    to_act, have_hit = movement.to_act & ~acted, movement.have_hit | hits
    next_sub_step = acted.any() & ~to_act.any() & (movement.sub_step == 0)
    return Movement(
        to_act=to_act | (ground.act_twice & ~have_hit).only_if(next_sub_step),
        sub_step=movement.sub_step + next_sub_step,
        num_acted=where(next_sub_step, 0, movement.num_acted + acted.any()),
        have_hit=have_hit,
        cell=movement.cell.moved(moves, answer),
        last=movement.last.moved(is_seen, answer),
        enemies_at=bitboard.select(moves.any(), others | of_cell(answer), movement.enemies_at),
        hp=jnp.maximum(movement.hp - hits.any(), 0),
        reached=reached.only_if(acts & (answer == Answer.SEARCH_ON)),
        alone=acts & searches & (movement.alone | (answer == Answer.SEARCH_ALONE)),
    )


def _next_enemy(movement: Movement, ground: Ground) -> jax.Array:
    """int32: the slot of a randomly drawn enemy among those still to act."""
    index = movement.sub_step * MAX_ENEMIES + movement.num_acted
    nth = ground.dice.choose(Site.ENEMY_ORDER, movement.to_act.size(), index)
    return bitboard.nth_bit(movement.to_act.word, nth)


def finish_turn(state: State, movement: Movement, active: jax.Array) -> State:
    """Steps 4 to 6: applies the movement's results, then spawns and rests."""
    state = replace(
        state,
        player=replace(state.player, hp=movement.hp),
        enemies=replace(state.enemies, cell=movement.cell, last=movement.last),
        enemies_at=movement.enemies_at,
    )
    return rest(spawn_due(state, active), active)


def spawn_due(state: State, active: jax.Array) -> State:
    """Spawns the scheduled transmission, unless CALM is on, then those pending from siphoning."""
    scheduled = active & ~state.calm & (state.turn >= state.next_task)
    pending = where(active, state.pending, 0)
    first = where(scheduled, SCHEDULED_SPAWN, SCHEDULED_SPAWN + 1)
    count = scheduled + jnp.minimum(pending, CELLS)
    state = spawn(state, count, scheduled=scheduled, owed=pending > 0, first=first)
    next_task = saturate(state.turn + state.interval)
    return replace(
        state,
        next_task=where(scheduled, next_task, state.next_task),
        pending=state.pending - pending,
    )


def rest(state: State, active: jax.Array) -> State:
    """Counts down disabled enemies and ends all stuns."""
    enemies = state.enemies
    resting = planes.nonzero(enemies.disabled).only_if(active)
    enemies = replace(
        enemies,
        disabled=planes.decrement(enemies.disabled, resting),
        stunned=enemies.stunned.only_if(~active),
    )
    return replace(state, enemies=enemies)
