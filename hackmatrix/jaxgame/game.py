"""Section 10: a game from its first corner to its end.

Laying out a stage is rare and heavy, so `step` leaves it to `batch.py`, which does it for the few
games that need it.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame.actions import go, valid_actions
from hackmatrix.jaxgame.bitboard import Bits
from hackmatrix.jaxgame.combat import attack
from hackmatrix.jaxgame.dice import Dice, choose
from hackmatrix.jaxgame.enemy_turn import enemy_turn
from hackmatrix.jaxgame.programs import run
from hackmatrix.jaxgame.reward import measure, reward_parts
from hackmatrix.jaxgame.siphoning import siphon
from hackmatrix.jaxgame.state import (
    DIED,
    INVALID_ACTION,
    RUNNING,
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
from hackmatrix.rules.enemies import MAX_ENEMIES
from hackmatrix.rules.programs import MAX_SAVED_STATES, PROGRAMS, P
from hackmatrix.rules.stages import (
    FIRST_INTERVAL,
    LAST_STAGE,
    MAX_HP,
    STAGE_INTERVAL,
    START_BONUSES,
)

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
    corner = jnp.asarray(CORNERS)[choose(dice, Site.START_CORNER, len(CORNERS))]
    bonus = jnp.asarray(START_BONUSES)[choose(dice, Site.START_BONUS, len(START_BONUSES))]
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
    return State(
        player=position.player,
        cells=position.cells,
        enemies=position.enemies,
        transmissions=position.transmissions,
        owned=position.owned,
        acquired=position.acquired,
        turn=zero,
        show=no,
        calm=no,
        atk_uses=zero,
        dice=dice,
        exit=corner,
        stage=jnp.int32(1),
        interval=jnp.int32(FIRST_INTERVAL),
        next_task=jnp.int32(FIRST_INTERVAL),
        pending=zero,
        step=no,
        saved=jax.tree.map(lambda x: jnp.zeros((MAX_SAVED_STATES, *x.shape), x.dtype), position),
        saved_count=zero,
        saved_newest=zero,
        over=jnp.int32(RUNNING),
    )


def empty_position(player: Player) -> Position:
    """A position with the player alone on an empty board."""

    def zeros(size: int, dtype: type = jnp.int8) -> jax.Array:
        return jnp.zeros(size, dtype)

    def nowhere() -> Bits:
        return Bits(jnp.uint32(0), jnp.uint32(0))

    return Position(
        player=player,
        cells=Cells(
            blocks=nowhere(),
            data=nowhere(),
            questions=nowhere(),
            siphons=nowhere(),
            siphoned=nowhere(),
            center=nowhere(),
            credits=zeros(CELLS),
            energy=zeros(CELLS),
            value=zeros(CELLS),
            spawn=zeros(CELLS),
        ),
        enemies=Enemies(
            count=jnp.int32(0),
            **{name: zeros(MAX_ENEMIES) for name in ("cell", "type", "hp", "disabled", "last")},
            **{
                name: zeros(MAX_ENEMIES, jnp.bool)
                for name in ("stunned", "from_schedule", "from_siphon")
            },
        ),
        transmissions=Transmissions(
            count=jnp.int32(0),
            cell=zeros(CELLS),
            turns=zeros(CELLS, jnp.int16),
            type=zeros(CELLS),
            from_schedule=zeros(CELLS, jnp.bool),
            from_siphon=zeros(CELLS, jnp.bool),
        ),
        owned=jnp.uint32(0),
        acquired=zeros(len(PROGRAMS)),
        turn=jnp.int32(0),
        show=jnp.bool(False),
        calm=jnp.bool(False),
        atk_uses=jnp.int32(0),
    )


def step(state: State, action: jax.Array) -> tuple[State, Outcome]:
    """Take an action; an invalid one ends the game, after the end nothing changes any more.

    The next stage is not laid out yet (`Outcome.begins_stage`).
    """
    running = state.over == RUNNING
    in_range = (action >= 0) & (action < NUM_ACTIONS)
    bit = valid_actions(state) >> jnp.clip(action, 0, NUM_ACTIONS - 1).astype(jnp.uint32)
    valid = running & in_range & (bit & 1 == 1)
    action = jnp.where(valid, action, _NOTHING).astype(jnp.int32)
    state = replace(state, dice=state.dice._replace(clock=state.dice.clock + valid))
    before = measure(state, action)

    state, kills, picked_up, entered = act(state, action)
    completed = entered & (state.player.cell == state.exit)
    state = complete_stage(state, completed)
    state = enemy_turn(state, ends_turn(action) & ~completed)
    died = valid & (state.player.hp == 0)
    over = jnp.where(died, DIED, jnp.where(running & ~valid, INVALID_ACTION, state.over))
    state = replace(state, over=over)
    parts = reward_parts(before, state, action, kills, picked_up, completed)
    return state, Outcome(
        parts=jnp.where(valid, parts, 0),
        stage_completed=completed,
        begins_stage=completed & (over == RUNNING),
    )


def act(state: State, action: jax.Array) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """The player's part of a step.

    Returns:
        The state, int32 kills that pay, bool whether a data siphon was picked up, bool whether the
        player came to a new cell by walking or WARP.
    """
    is_direction = (action >= 0) & (action < SIPHON)
    number = jnp.where(action >= FIRST_PROGRAM, action - FIRST_PROGRAM, _NOTHING)
    came_from = state.player.cell
    state, hit, picked_up = go(state, action, is_direction)
    entered = (is_direction & (state.player.cell != came_from)) | (number == P.WARP)
    state = siphon(state, action == SIPHON)
    state, effect = run(state, number)
    state, kills = attack(state, select(is_direction, hit, effect))
    return state, kills, picked_up, entered


def ends_turn(action: jax.Array) -> jax.Array:
    """Whether the enemies move after an action: all but the programs other than WAIT."""
    return ((action >= 0) & (action <= SIPHON)) | (action == FIRST_PROGRAM + P.WAIT)


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
