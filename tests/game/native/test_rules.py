"""The constants of `rules.hpp` are those of `hackmatrix/game/rules`, the structs those of NumPy."""

import numpy as np
import pytest

from hackmatrix.game.native import _native, layout
from hackmatrix.game.rules import (
    actions,
    board,
    chance,
    enemies,
    observation,
    programs,
    rewards,
    stages,
    tactical,
    training_reward,
)

EXPECTED = {
    "SIZE": board.SIZE,
    "CELLS": board.CELLS,
    "CORNERS": board.CORNERS,
    "LIMIT": board.LIMIT,
    "MAX_RESOURCE": board.MAX_RESOURCE,
    "MAX_SPAWN": board.MAX_SPAWN,
    "MAX_DISABLED": enemies.MAX_DISABLED,
    "ROWS": [rows for rows, _ in board.DIRECTIONS],
    "COLS": [cols for _, cols in board.DIRECTIONS],
    "EXIT": board.Content.EXIT,
    "NUM_DIRECTIONS": actions.NUM_DIRECTIONS,
    "ENEMY_TYPES": len(enemies.EnemyType),
    "CRYPTOG": enemies.EnemyType.CRYPTOG,
    "MAX_ENEMIES": enemies.MAX_ENEMIES,
    "ENEMY_HP": enemies.MAX_HP,
    "STEPS_PER_TURN": enemies.STEPS_PER_TURN,
    "MOST_STEPS": max(enemies.STEPS_PER_TURN),
    "SIPHON": actions.SIPHON,
    "FIRST_PROGRAM": actions.FIRST_PROGRAM,
    "NUM_ACTIONS": actions.NUM_ACTIONS,
    "PROGRAMS": [(p.credits, p.energy, p.spawn) for p in programs.PROGRAMS],
    "HACK": programs.ProgramId.HACK,
    "MAX_SAVED_STATES": programs.MAX_SAVED_STATES,
    "EXCH_ENERGY": programs.EXCH_ENERGY,
    "DELAY_TURNS": programs.DELAY_TURNS,
    "MAX_ATK_USES": programs.MAX_ATK_USES,
    "LAST_STAGE": stages.LAST_STAGE,
    "PLAYER_HP": stages.MAX_HP,
    "FIRST_INTERVAL": stages.FIRST_INTERVAL,
    "STAGE_INTERVAL": stages.STAGE_INTERVAL,
    "MIN_INTERVAL": stages.MIN_INTERVAL,
    "SIPHON_DELAY": stages.SIPHON_DELAY,
    "MIN_BLOCKS": stages.MIN_BLOCKS,
    "MAX_BLOCKS": stages.MAX_BLOCKS,
    "MAX_POINTS": board.MAX_POINTS,
    "LAYOUT_TRIES": stages.LAYOUT_TRIES,
    "QUESTION_CHANCES": len(stages.QUESTION_CHANCES),
    "AMOUNT_CHANCES": stages.AMOUNT_CHANCES,
    "START_BONUSES": stages.START_BONUSES,
    "WARP_TARGET": chance.Site.WARP_TARGET,
    "SCHEDULED_SPAWN": chance.SCHEDULED_SPAWN,
    "FIRST_PENDING_SPAWN": chance.FIRST_PENDING_SPAWN,
    "FIRST_STAGE_SPAWN": chance.FIRST_STAGE_SPAWN,
    "LAYOUT_STRIDE": chance.LAYOUT_STRIDE,
    "UNIT": rewards.UNIT,
    "NUM_PARTS": len(rewards.REWARD_PARTS),
    "STAGE_COMPLETION": rewards.STAGE_COMPLETION,
    "DEATH": rewards.DEATH,
    "STEP_PENALTY": rewards.STEP,
    "SCORE_GAIN": rewards.SCORE_GAIN,
    "KILL": rewards.KILL,
    "DATA_SIPHON_GAIN": rewards.DATA_SIPHON,
    "DISTANCE": rewards.DISTANCE,
    "VICTORY": rewards.VICTORY,
    "VICTORY_SCORE": rewards.VICTORY_SCORE,
    "RESOURCE_GAIN": rewards.RESOURCE_GAIN,
    "RESOURCE_HOLDING": rewards.RESOURCE_HOLDING,
    "DAMAGE": rewards.DAMAGE,
    "HP_RECOVERY": rewards.HP_RECOVERY,
    "SIPHON_QUALITY": rewards.SIPHON_QUALITY,
    "PROGRAM_WASTE": rewards.PROGRAM_WASTE,
    "SIPHON_DEATH": rewards.SIPHON_DEATH,
    "STAGE_PAID": training_reward.STAGE,
    "WIN_PAID": training_reward.WIN,
    "DEATH_COST": training_reward.DEATH,
    "HP_WORTH": training_reward.HP,
    "SIPHON_WORTH": training_reward.SIPHON,
    "RESOURCE_WORTH": training_reward.RESOURCE,
    "MAX_SIPHONS": training_reward.MAX_SIPHONS,
    "HOARD": training_reward.HOARD,
    "MAX_TURNS": observation.MAX_TURNS,
    "MAX_SEEN": observation.MAX_SEEN,
    "MAX_DISTANCE": observation.MAX_DISTANCE,
    "NUMBERS": observation.BYTE["cell"],
    "RECORD_SIZE": observation.RECORD_SIZE,
    "FAR": tactical.FAR,
    "MAX_HITS": tactical.MAX_HITS,
    "MAX_COUNT": tactical.MAX_COUNT,
    "MAX_SPAWNS": tactical.MAX_SPAWNS,
    "RINGS": tactical.RINGS,
    "LARGEST_WORTH": tactical.LARGEST_WORTH,
    "NO_WORTH": tactical.NO_WORTH,
    "HOARDS": tactical.HOARDS,
    "WINDOW": tactical.WINDOW,
    "STRIKES": tactical.STRIKES,
    "CREDIT_WORTH": tactical.CREDIT_WORTH,
    "ENERGY_WORTH": tactical.ENERGY_WORTH,
    "SPAWN_WORTH": tactical.SPAWN_WORTH,
    "STEP_WORTH": tactical.STEP_WORTH,
    "QUESTION_WORTH": tactical.QUESTION_WORTH,
    "PROGRAM_WORTH": tactical.PROGRAM_WORTH,
    "TACTICAL_SIZE": tactical.TACTICAL_SIZE,
}


def test_every_constant_is_compared() -> None:
    assert set(_native.RULES) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_constant(name: str) -> None:
    def plain(value: object) -> object:
        if isinstance(value, tuple | list):
            return [plain(each) for each in value]
        return np.float32(value) if isinstance(value, float) else value

    assert plain(_native.RULES[name]) == plain(EXPECTED[name])


def test_question_blocks_are_the_first_of_the_chances() -> None:
    assert (True, *[False] * 9) == stages.QUESTION_CHANCES


def test_sizes_of_the_structs() -> None:
    assert layout.STATE.itemsize == _native.STATE_SIZE
    assert layout.SAVED_POSITIONS.itemsize == _native.SAVED_SIZE
