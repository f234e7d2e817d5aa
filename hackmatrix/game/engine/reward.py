"""Section 11: the 15 parts of the reward, in integer units of 0.005."""

from typing import NamedTuple

from hackmatrix.game.engine.movement import exit_distance
from hackmatrix.game.engine.siphoning import missed_resources
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules import rewards
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.board import NEIGHBOURS
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.stages import MAX_HP


class Before(NamedTuple):
    """Quantities of the state before the action that the reward depends on."""

    stage: int
    hp: int
    score: int
    credits: int
    energy: int
    distance: int  # to the exit, 0 without a path
    missed_resources: int  # more credits and energy that a better cell would have given


def measure(state: State, action: int) -> Before:
    """Records these quantities before an action."""
    player = state.player
    return Before(
        state.stage,
        player.hp,
        player.score,
        player.credits,
        player.energy,
        exit_distance(state),
        sum(missed_resources(state)) if action == SIPHON else 0,
    )


def reward_parts(
    before: Before,
    state: State,
    action: int,
    *,
    kills: int,
    picked_up: bool,
    completed: bool,
    won: bool,
) -> dict[str, int]:
    """The reward parts of a valid action by name, in units of 0.005.

    Args:
        before: `measure` of the state before the action.
        state: the state after the action, the enemy turn and the start of a new stage.
        action: the action taken.
        kills: number of pieces destroyed, without those from the schedule.
        picked_up: whether a data siphon was picked up by walking.
        completed: whether the stage was completed.
        won: whether that was the last stage.
    """
    player = state.player
    died = player.hp == 0
    distance = 0 if completed else exit_distance(state)
    nearer = 0 if died else max(0, before.distance - distance)
    gained = player.credits - before.credits + player.energy - before.energy
    held = player.credits + player.energy
    wasted = action == FIRST_PROGRAM + ProgramId.RESET and before.hp == MAX_HP - 1
    siphon_killed = died and any(
        enemy.from_siphon and enemy.cell in NEIGHBOURS[player.cell] for enemy in state.enemies
    )
    return {
        "step_penalty": rewards.STEP,
        "stage_completion": rewards.STAGE_COMPLETION[before.stage - 1] * completed,
        "score_gain": rewards.SCORE_GAIN * (player.score - before.score),
        "kills": rewards.KILL * kills,
        "data_siphon": rewards.DATA_SIPHON * picked_up,
        "distance_shaping": rewards.DISTANCE * nearer,
        "victory": (rewards.VICTORY + rewards.VICTORY_SCORE * player.score) * won,
        "death_penalty": rewards.DEATH[before.stage - 1] * died,
        "resource_gain": rewards.RESOURCE_GAIN * gained,
        "resource_holding": rewards.RESOURCE_HOLDING * held * completed,
        "damage_penalty": rewards.DAMAGE * max(0, before.hp - player.hp),
        "hp_recovery": rewards.HP_RECOVERY * max(0, player.hp - before.hp),
        "siphon_quality": rewards.SIPHON_QUALITY * before.missed_resources,
        "program_waste": rewards.PROGRAM_WASTE * wasted,
        "siphon_death_penalty": rewards.SIPHON_DEATH * siphon_killed,
    }
