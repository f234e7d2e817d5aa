"""Section 10: a game from its first corner to its end.

Laying out a stage is rare and heavy, so `step` leaves it to `batch.py`, which does it for the few
games that need it.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame.actions import go, valid_actions
from hackmatrix.jaxgame.bitboard import CellSet, EnemySet, of_cell
from hackmatrix.jaxgame.combat import NOBODY, attack
from hackmatrix.jaxgame.control_flow import compute_once
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.jaxgame.enemy_turn import Movement, begin_turn, finish_turn
from hackmatrix.jaxgame.planes import Coordinates
from hackmatrix.jaxgame.programs import run
from hackmatrix.jaxgame.reward import Before, measure, reward_parts
from hackmatrix.jaxgame.siphoning import siphon
from hackmatrix.jaxgame.state import (
    AMOUNT_BITS,
    DIED,
    DISABLED_BITS,
    HP_BITS,
    INVALID_ACTION,
    LINE_BITS,
    NOT_MOVED,
    RUNNING,
    SPAWN_BITS,
    TURNS_BITS,
    TYPE_BITS,
    VALUE_BITS,
    WON,
    Cells,
    Enemies,
    Player,
    Position,
    State,
    Transmissions,
    select,
)
from hackmatrix.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.rules.board import CELLS, CORNERS
from hackmatrix.rules.chance import Site
from hackmatrix.rules.programs import MAX_SAVED_STATES, ProgramId
from hackmatrix.rules.stages import (
    FIRST_INTERVAL,
    LAST_STAGE,
    MAX_HP,
    STAGE_INTERVAL,
    START_BONUSES,
)

_T = TypeVar("_T")
_Set = TypeVar("_Set", CellSet, EnemySet)

_NOTHING = -1  # an action that changes nothing


class Outcome(NamedTuple):
    """What one action did.

    Attributes:
        parts: int32[15], reward parts in units of 0.005 (all 0 for an invalid action).
        stage_completed: bool, a stage was completed; true on the winning step too.
        begins_stage: bool, the next stage has to be laid out.
    """

    parts: jax.Array
    stage_completed: jax.Array
    begins_stage: jax.Array


def new_game(stream: jax.Array, episode: jax.Array) -> State:
    """The game with this name (uint32 scalars), before its first stage is laid out."""
    dice = Dice(stream, episode, jnp.zeros_like(stream))
    corner = jnp.asarray(CORNERS)[dice.choose(Site.START_CORNER, len(CORNERS))]
    bonus = jnp.asarray(START_BONUSES)[dice.choose(Site.START_BONUS, len(START_BONUSES))]
    zero, no = jnp.int32(0), jnp.bool(False)
    player = Player(
        cell=corner,
        hp=jnp.int32(MAX_HP),
        credits=bonus[0],
        energy=bonus[1],
        siphons=bonus[2],
        attack=jnp.int32(1),
        score=zero,
    )
    position = empty_position(player)
    words = len(jax.tree.leaves(position))
    return State(
        **{f.name: getattr(position, f.name) for f in fields(Position)},
        dice=dice,
        exit=corner,
        stage=jnp.int32(1),
        interval=jnp.int32(FIRST_INTERVAL),
        next_task=jnp.int32(FIRST_INTERVAL),
        pending=zero,
        step=no,
        enemies_at=position.cells.blocks,
        coming_at=position.cells.blocks,
        saved=jnp.zeros((MAX_SAVED_STATES, words), jnp.uint32),
        saved_count=zero,
        saved_newest=zero,
        over=jnp.int32(RUNNING),
    )


def empty_position(player: Player) -> Position:
    """A position with the player alone on an empty board."""
    nowhere, nobody, zero = of_cell(jnp.int32(CELLS)), NOBODY, jnp.int32(0)
    no = jnp.bool(False)

    def spots(nothing: _Set) -> Coordinates[_Set]:
        return Coordinates((nothing,) * LINE_BITS, (nothing,) * LINE_BITS)

    return Position(
        player=player,
        cells=Cells(
            blocks=nowhere,
            data=nowhere,
            questions=nowhere,
            siphons=nowhere,
            siphoned=nowhere,
            center=nowhere,
            credits=(nowhere,) * AMOUNT_BITS,
            energy=(nowhere,) * AMOUNT_BITS,
            value=(nowhere,) * VALUE_BITS,
            spawn=(nowhere,) * SPAWN_BITS,
        ),
        enemies=Enemies(
            count=zero,
            cell=spots(nobody),
            type=(nobody,) * TYPE_BITS,
            hp=(nobody,) * HP_BITS,
            disabled=(nobody,) * DISABLED_BITS,
            stunned=nobody,
            from_schedule=nobody,
            from_siphon=nobody,
            last=spots(nobody),
        ),
        transmissions=Transmissions(
            count=zero,
            cell=spots(nowhere),
            turns=(nowhere,) * TURNS_BITS,
            type=(nowhere,) * TYPE_BITS,
            from_schedule=nowhere,
            from_siphon=nowhere,
        ),
        owned=jnp.uint32(0),
        acquired=(nobody,) * VALUE_BITS,
        turn=zero,
        show=no,
        calm=no,
        atk_uses=zero,
    )


class Turn(NamedTuple):
    """An action under way: what is known when the enemies begin to move."""

    before: Before
    action: jax.Array  # int32, -1 if it is not valid
    running: jax.Array  # bool, the game had not ended before
    kills: jax.Array  # int32, that pay
    picked_up: jax.Array  # bool, a data siphon by walking
    completed: jax.Array  # bool, the stage
    enemies_move: jax.Array  # bool


def begin_step(state: State, action: jax.Array, newest: list[jax.Array]) -> tuple[State, Turn]:
    """Take an action; an invalid one ends the game, after the end nothing changes any more.

    What follows is the movement of the enemies (`enemy_turn.act`) and `finish_step`.

    Args:
        state: the game.
        action: int32.
        newest: the saved position that UNDO restores, as `state.packed`.
    """
    running = state.over == RUNNING
    in_range = (action >= 0) & (action < NUM_ACTIONS)
    bit = valid_actions(state) >> jnp.clip(action, 0, NUM_ACTIONS - 1).astype(jnp.uint32)
    valid = running & in_range & (bit & 1 == 1)
    action = (
        compute_once(running, lambda: jnp.where(valid, action, _NOTHING).astype(jnp.int32) + 1) - 1
    )
    valid = action != _NOTHING
    state = replace(state, dice=state.dice._replace(clock=state.dice.clock + valid))
    before = measure(state, action)

    def take(state: State) -> tuple[State, tuple[jax.Array, ...]]:
        state, (kills, picked_up, entered, gone) = act(state, action, newest)
        completed = entered & (state.player.cell == state.exit)
        state = complete_stage(state, completed)
        state, enemies_move = begin_turn(state, ends_turn(action) & ~completed, gone)
        return state, (kills, picked_up, completed, enemies_move)

    state, done = settled(state, take)
    return state, Turn(before, action, running, *done)


def settled(state: State, rule: Callable[[State], tuple[State, _T]]) -> tuple[State, _T]:
    """What a rule makes of a state, worked out here once and for all (`control_flow.compute_once`).

    For rules that leave the saved states alone, which are not moved around.
    """

    def compute() -> tuple[State, _T]:
        new, result = rule(state)
        return replace(new, saved=NOT_MOVED), result

    always = state.stage > 0  # which the compiler can't know
    new, result = compute_once(always, compute)
    return replace(new, saved=state.saved), result


def finish_step(state: State, turn: Turn, movement: Movement) -> tuple[State, Outcome]:
    """The step from the end of the enemies' movement on.

    The next stage is not laid out yet (`Outcome.begins_stage`).
    """
    state = finish_turn(state, movement, turn.enemies_move)
    valid = turn.action != _NOTHING
    died = valid & (state.player.hp == 0)
    over = jnp.where(died, DIED, jnp.where(turn.running & ~valid, INVALID_ACTION, state.over))
    state = replace(state, over=over)
    parts = reward_parts(
        turn.before, state, turn.action, turn.kills, turn.picked_up, turn.completed
    )
    return state, Outcome(
        parts=jnp.where(valid, parts, 0),
        stage_completed=turn.completed,
        begins_stage=turn.completed & (over == RUNNING),
    )


def act(
    state: State, action: jax.Array, newest: list[jax.Array]
) -> tuple[State, tuple[jax.Array, jax.Array, jax.Array, CellSet]]:
    """The player's part of a step.

    Returns:
        The state, int32 kills that pay, bool whether a data siphon was picked up, bool whether the
        player came to a new cell by walking or WARP, and the transmissions destroyed, which are
        still in their list.
    """
    is_direction = (action >= 0) & (action < SIPHON)
    number = jnp.where(action >= FIRST_PROGRAM, action - FIRST_PROGRAM, _NOTHING)
    came_from = state.player.cell
    state, hit, picked_up = go(state, action, is_direction)
    entered = (is_direction & (state.player.cell != came_from)) | (number == ProgramId.WARP)
    state = siphon(state, action == SIPHON)
    state, effect = run(state, newest, number)
    blow = compute_once(action != _NOTHING, lambda: select(is_direction, hit, effect))
    state, kills = attack(state, blow)
    return state, (kills, picked_up, entered, blow.gone & state.transmissions.alive)


def ends_turn(action: jax.Array) -> jax.Array:
    """Whether the enemies move after an action: all but the programs other than WAIT."""
    return ((action >= 0) & (action <= SIPHON)) | (action == FIRST_PROGRAM + ProgramId.WAIT)


def complete_stage(state: State, completed: jax.Array) -> State:
    """Heal and go on to the next stage, or win."""
    wins = completed & (state.stage == LAST_STAGE)
    advances = completed & ~wins
    hp = jnp.minimum(state.player.hp + completed, MAX_HP)
    stage = state.stage + advances
    return replace(
        state,
        player=replace(state.player, hp=hp),
        stage=stage,
        interval=jnp.where(advances, STAGE_INTERVAL - stage, state.interval),
        over=jnp.where(wins, WON, state.over),
    )
