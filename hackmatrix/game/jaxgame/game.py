"""Section 10: a whole game, from the start to its end.

A step has two parts, before and after the enemies' movement, and `batch.step` runs the movement in
between. Generating a stage is rare and expensive, so `batch.py` does that for the few games that
need it.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import undo
from hackmatrix.game.jaxgame.actions import go, valid_actions
from hackmatrix.game.jaxgame.bitboard import NOBODY, NOWHERE, TransmissionSet
from hackmatrix.game.jaxgame.combat import attack
from hackmatrix.game.jaxgame.control_flow import compute_once, for_all, looked_up, select, where
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.enemy_turn import Movement, begin_turn, finish_turn
from hackmatrix.game.jaxgame.programs import run
from hackmatrix.game.jaxgame.reward import Before, measure, reward_parts
from hackmatrix.game.jaxgame.siphoning import siphon
from hackmatrix.game.jaxgame.state import (
    Ending,
    Enemies,
    Player,
    Position,
    State,
    Transmissions,
    empty_board,
    zeros,
)
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import CORNERS
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.stages import (
    FIRST_INTERVAL,
    LAST_STAGE,
    MAX_HP,
    STAGE_INTERVAL,
    START_BONUSES,
)

_T = TypeVar("_T")

_NOTHING = -1  # an action that changes nothing
_UNDO = FIRST_PROGRAM + ProgramId.UNDO


class Outcome(NamedTuple):
    """Result of one action.

    Attributes:
        parts: int32[15], reward parts in units of 0.005 (all 0 for an invalid action).
        stage_completed: bool, whether the action completed a stage, the last one included.
        begins_stage: bool, whether the next stage has to be generated.
    """

    parts: jax.Array
    stage_completed: jax.Array
    begins_stage: jax.Array


def new_game(stream: jax.Array, episode: jax.Array) -> State:
    """The game of this stream and episode (uint32 scalars), before its first stage is generated."""
    dice = Dice(stream, episode, jnp.zeros_like(stream))
    corner = looked_up(CORNERS, dice.choose(Site.START_CORNER, len(CORNERS)))
    bonus = dice.choose(Site.START_BONUS, len(START_BONUSES))
    credits, energy, siphons = (
        looked_up(amounts, bonus) for amounts in zip(*START_BONUSES, strict=True)
    )
    zero, no = jnp.int32(0), jnp.bool(False)
    position = Position(
        player=Player(
            cell=corner,
            hp=jnp.int32(MAX_HP),
            credits=credits,
            energy=energy,
            siphons=siphons,
            attack=jnp.int32(1),
            score=zero,
        ),
        cells=empty_board(),
        enemies=Enemies.none(),
        transmissions=Transmissions.none(),
        owned=jnp.uint32(0),
        acquired=zeros("acquired", NOBODY),
        turn=zero,
        show=no,
        calm=no,
        atk_uses=zero,
    )
    state = State(
        **{f.name: getattr(position, f.name) for f in fields(Position)},
        dice=dice,
        exit=corner,
        stage=jnp.int32(1),
        interval=jnp.int32(FIRST_INTERVAL),
        next_task=jnp.int32(FIRST_INTERVAL),
        pending=zero,
        step=no,
        enemies_at=NOWHERE,
        transmissions_at=NOWHERE,
        saved=undo.none_saved(like=position, games=stream.shape),
        over=jnp.int32(Ending.RUNNING),
    )
    rows = state.saved.rows
    return undo.with_rows(for_all(undo.without_rows(state), like=stream), rows)


class ActionTaken(NamedTuple):
    """An action in progress: its results up to the enemies' movement."""

    before: Before
    action: jax.Array  # int32, -1 if it is not valid
    running: jax.Array  # bool, whether the game had not ended before
    kills: jax.Array  # int32, kills that give a reward
    picked_up: jax.Array  # bool, whether a data siphon was picked up by walking
    completed: jax.Array  # bool, whether the stage was completed
    enemies_move: jax.Array  # bool, whether an enemy turn takes place


def begin_step(
    state: State, action: jax.Array, newest_saved: jax.Array
) -> tuple[State, ActionTaken]:
    """Takes an action; an invalid one ends the game, and after the end nothing changes.

    The movement of the enemies (`enemy_turn.act`) and `finish_step` follow.

    Args:
        state: the game.
        action: int32.
        newest_saved: uint32[w, ...], the words of the position that UNDO would restore
            (`undo.snapshot`).
    """
    running = state.over == Ending.RUNNING
    in_range = (action >= 0) & (action < NUM_ACTIONS)
    bit = valid_actions(state) >> jnp.clip(action, 0, NUM_ACTIONS - 1).astype(jnp.uint32)
    valid = running & in_range & (bit & 1 == 1)
    # Offset by `_NOTHING`, because `compute_once` gives 0 where no game is running.
    numbered = compute_once(
        running, lambda: where(valid, action, _NOTHING).astype(jnp.int32) - _NOTHING
    )
    action = numbered + _NOTHING
    valid = action != _NOTHING
    state = replace(state, dice=state.dice._replace(clock=state.dice.clock + valid))
    before = measure(state, action)
    # UNDO replaces the whole position and does nothing else, so its games take no other action.
    undoes = action == _UNDO
    other = where(undoes, _NOTHING, action)

    def take(state: State) -> tuple[State, tuple[jax.Array, ...]]:
        state, (kills, picked_up, entered, gone) = act(state, other)
        completed = entered & (state.player.cell == state.exit)
        state = complete_stage(state, completed)
        state, enemies_move = begin_turn(state, ends_turn(other) & ~completed, gone)
        state = undo.restore(state, newest_saved, undoes)
        return state, (kills, picked_up, completed, enemies_move)

    state, done = _apply_once(take, state)
    return state, ActionTaken(before, action, running, *done)


def _apply_once(rule: Callable[[State], tuple[State, _T]], state: State) -> tuple[State, _T]:
    """`compute_once` of `rule(state)`, for rules that do not touch the rows of saved positions."""

    def compute() -> tuple[State, _T]:
        new, result = rule(state)
        return undo.without_rows(new), result

    needed = state.stage > 0  # always true, which the compiler cannot know
    new, result = compute_once(needed, compute)
    return undo.with_rows(new, state.saved.rows), result


def finish_step(
    state: State, in_progress: ActionTaken, movement: Movement
) -> tuple[State, Outcome]:
    """The part of the step after the enemies' movement.

    The next stage is not generated yet (`Outcome.begins_stage`).
    """
    state = finish_turn(state, movement, in_progress.enemies_move)
    valid = in_progress.action != _NOTHING
    died = valid & (state.player.hp == 0)
    over = where(
        died, Ending.DIED, where(in_progress.running & ~valid, Ending.INVALID_ACTION, state.over)
    )
    state = replace(state, over=over)
    parts = reward_parts(
        in_progress.before,
        state,
        in_progress.action,
        in_progress.kills,
        in_progress.picked_up,
        in_progress.completed,
    )
    return state, Outcome(
        parts=jnp.where(valid, parts, 0),
        stage_completed=in_progress.completed,
        begins_stage=in_progress.completed & (over == Ending.RUNNING),
    )


def act(
    state: State, action: jax.Array
) -> tuple[State, tuple[jax.Array, jax.Array, jax.Array, TransmissionSet]]:
    """Applies the player's action.

    Returns:
        The state; int32, rewarded kills; bool, whether a data siphon was picked up; bool, whether
        the player entered a new cell by walking or WARP; and the destroyed transmissions, which
        are still in their list.
    """
    is_direction = (action >= 0) & (action < SIPHON)
    program = where(action >= FIRST_PROGRAM, action - FIRST_PROGRAM, _NOTHING)
    came_from = state.player.cell
    state, hit, picked_up = go(state, action, is_direction)
    entered = (is_direction & (state.player.cell != came_from)) | (program == ProgramId.WARP)
    state = siphon(state, action == SIPHON)
    state, effect = run(state, program)
    blow = compute_once(action != _NOTHING, lambda: select(is_direction, hit, effect))
    state, kills = attack(state, blow)
    return state, (kills, picked_up, entered, blow.gone & state.transmissions.alive)


def ends_turn(action: jax.Array) -> jax.Array:
    """Whether an enemy turn follows an action: always, except for programs other than WAIT."""
    return ((action >= 0) & (action <= SIPHON)) | (action == FIRST_PROGRAM + ProgramId.WAIT)


def complete_stage(state: State, completed: jax.Array) -> State:
    """Heals the player, then advances to the next stage or ends the game as won."""
    wins = completed & (state.stage == LAST_STAGE)
    advances = completed & ~wins
    hp = jnp.minimum(state.player.hp + completed, MAX_HP)
    stage = state.stage + advances
    return replace(
        state,
        player=replace(state.player, hp=hp),
        stage=stage,
        interval=where(advances, STAGE_INTERVAL - stage, state.interval),
        over=where(wins, Ending.WON, state.over),
    )
