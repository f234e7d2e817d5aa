"""Section 11: the 15 parts of the reward, in integer units of 0.005."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame.bitboard import EnemySet, col_of, row_of
from hackmatrix.game.jaxgame.control_flow import for_all, where
from hackmatrix.game.jaxgame.movement import exit_distance
from hackmatrix.game.jaxgame.siphoning import missed_resources
from hackmatrix.game.jaxgame.state import Ending, State
from hackmatrix.game.rules import rewards
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.stages import MAX_HP


class Before(NamedTuple):
    """Quantities of the state before the action that the reward depends on; int32 scalars."""

    stage: jax.Array
    hp: jax.Array
    score: jax.Array
    credits: jax.Array
    energy: jax.Array
    distance: jax.Array  # to the exit, 0 without a path
    missed_resources: jax.Array  # more credits and energy that a better cell would have given


def measure(state: State, action: jax.Array) -> Before:
    """Records these quantities before an action."""
    player = state.player
    return Before(
        state.stage,
        player.hp,
        player.score,
        player.credits,
        player.energy,
        exit_distance(state),
        where(action == SIPHON, missed_resources(state), 0),
    )


def reward_parts(
    before: Before,
    state: State,
    action: jax.Array,
    kills: jax.Array,
    picked_up: jax.Array,
    completed: jax.Array,
) -> jax.Array:
    """int32[15]: reward parts of a valid action in units of 0.005, in the order of `REWARD_PARTS`.

    Args:
        before: `measure` of the state before the action.
        state: the state after the action and the enemy turn.
        action: int32, the action taken.
        kills: int32, number of pieces destroyed, without those from the schedule.
        picked_up: bool, whether a data siphon was picked up by walking.
        completed: bool, whether the stage was completed.
    """
    player, enemies = state.player, state.enemies
    died, won = state.over == Ending.DIED, state.over == Ending.WON
    distance = exit_distance(state)
    nearer = jnp.maximum(before.distance - where(completed, 0, distance), 0)
    gained = player.credits - before.credits + player.energy - before.energy
    held = player.credits + player.energy
    wasted = (action == FIRST_PROGRAM + ProgramId.RESET) & (before.hp == MAX_HP - 1)
    siphon_killed = died & (_next_to_player(state) & enemies.from_siphon).any()
    parts = [
        jnp.int32(rewards.STEP),
        _of_stage(rewards.STAGE_COMPLETION, before.stage) * completed,
        rewards.SCORE_GAIN * (player.score - before.score),
        rewards.KILL * kills,
        rewards.DATA_SIPHON * picked_up,
        rewards.DISTANCE * nearer * ~died,
        (rewards.VICTORY + rewards.VICTORY_SCORE * player.score) * won,
        _of_stage(rewards.DEATH, before.stage) * died,
        rewards.RESOURCE_GAIN * gained,
        rewards.RESOURCE_HOLDING * held * completed,
        rewards.DAMAGE * jnp.maximum(before.hp - player.hp, 0),
        rewards.HP_RECOVERY * jnp.maximum(player.hp - before.hp, 0),
        rewards.SIPHON_QUALITY * before.missed_resources,
        rewards.PROGRAM_WASTE * wasted,
        rewards.SIPHON_DEATH * siphon_killed,
    ]
    return jnp.stack(for_all(parts, like=kills)).astype(jnp.int32)


def _next_to_player(state: State) -> EnemySet:
    """The enemies on the cells next to the player."""
    spots, cell = state.enemies.cell, state.player.cell
    row, col = row_of(cell), col_of(cell)
    vertical = (spots.in_row(row + 1) | spots.in_row(row - 1)) & spots.in_col(col)
    horizontal = (spots.in_col(col + 1) | spots.in_col(col - 1)) & spots.in_row(row)
    return (vertical | horizontal) & state.enemies.alive


def _of_stage(values: tuple[int, ...], stage: jax.Array) -> jax.Array:
    """int32: the value for a stage 1..8."""
    result = jnp.int32(0)
    for number, value in enumerate(values, start=1):
        result = where(stage == number, value, result)
    return result
