"""Builds the answers of the process: observations, infos and the internal state as JSON."""

from typing import Any

from hackmatrix.engine import Outcome
from hackmatrix.engine.state import Cell, Ending, Enemy, State, Transmission
from hackmatrix.rules.actions import FIRST_PROGRAM
from hackmatrix.rules.board import CELLS, SIZE, Content, col, row
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.programs import PROGRAMS
from hackmatrix.rules.rewards import UNIT

Json = dict[str, Any]

REWARD_NAMES = {
    "stage_completion": "stage",
    "score_gain": "score",
    "kills": "kills",
    "data_siphon": "dataSiphon",
    "distance_shaping": "distance",
    "victory": "victory",
    "death_penalty": "death",
    "resource_gain": "resourceGain",
    "resource_holding": "resourceHolding",
    "damage_penalty": "damagePenalty",
    "hp_recovery": "hpRecovery",
    "siphon_quality": "siphonQuality",
    "program_waste": "programWaste",
    "siphon_death_penalty": "siphonDeathPenalty",
    "step_penalty": "stepPenalty",
}


def observation(state: State) -> Json:
    """The observation as JSON: only what the player can see, nothing hidden."""
    player = state.player
    cells = [cell_view(state, cell) for cell in range(CELLS)]
    return {
        "playerRow": row(player.cell),
        "playerCol": col(player.cell),
        "playerHP": player.hp,
        "credits": player.credits,
        "energy": player.energy,
        "stage": state.stage,
        "turn": state.turn,
        "dataSiphons": player.siphons,
        "baseAttack": player.attack,
        "score": player.score,
        "showActivated": state.show,
        "scheduledTasksDisabled": state.calm,
        "ownedPrograms": [FIRST_PROGRAM + number for number in state.owned],
        "cells": [cells[start : start + SIZE] for start in range(0, CELLS, SIZE)],
        "cryptogHints": [_place(enemy.last) for enemy in state.enemies if not state.sees(enemy)],
    }


def cell_view(state: State, index: int) -> Json:
    """One cell; absent or hidden things have no key."""
    cell = state.cells[index]
    view: Json = {
        **_place(index),
        "isDataSiphon": cell.content == Content.SIPHON,
        "isExit": cell.content == Content.EXIT,
        "siphonCenter": cell.center,
    }
    enemy = next(iter(state.enemies_on(index)), None)
    if enemy is not None and state.sees(enemy):
        view["enemy"] = enemy_view(enemy)
    if cell.is_block:
        view["block"] = block_view(cell)
    transmission = state.transmission_on(index)
    if transmission is not None:
        view["transmission"] = transmission_view(transmission, shown=state.show)
    if not cell.is_block or cell.siphoned:
        view.update({name: n for name in ("credits", "energy") if (n := getattr(cell, name))})
    return view


def enemy_view(enemy: Enemy) -> Json:
    """A visible enemy; the first in the list represents all on its cell."""
    return {
        "type": _name(enemy.type),
        "hp": enemy.hp,
        "isStunned": enemy.stunned,
        "spawnedFromSiphon": enemy.from_siphon,
    }


def block_view(cell: Cell) -> Json:
    """A block; a question block hides its content until it is siphoned."""
    if cell.content == Content.QUESTION and not cell.siphoned:
        return {"blockType": "question", "isSiphoned": False}
    if cell.is_data:
        facts: Json = {"blockType": "data", "points": cell.points}
    else:
        facts = {
            "blockType": "program",
            "points": 0,
            "programType": PROGRAMS[cell.program].name.lower(),
            "programActionIndex": FIRST_PROGRAM + cell.program,
        }
    return {**facts, "transmissionSpawnCount": cell.spawn, "isSiphoned": cell.siphoned}


def transmission_view(transmission: Transmission, *, shown: bool) -> Json:
    """A transmission, with its enemy type if SHOW is on."""
    view: Json = {"turnsUntilSpawn": transmission.turns}
    if shown:
        view["enemyType"] = _name(transmission.type)
    return view


def step_answer(state: State, outcome: Outcome) -> Json:
    """The answer to `step`."""
    info: Json = {}
    if outcome.ending == Ending.INVALID_ACTION:
        info["invalid_action"] = True
    if outcome.stage_completed:
        info["stage_complete"] = True
    if outcome.ending == Ending.DIED:
        info["death"] = True
    info["reward_breakdown"] = {
        name: points(outcome.parts[part]) for part, name in REWARD_NAMES.items()
    }
    return {
        "observation": observation(state),
        "reward": points(sum(outcome.parts.values())),
        "done": outcome.done,
        "info": info,
    }


def points(units: int) -> float:
    """A reward as a float, rounded to 3 decimals."""
    return round(units * UNIT, 3)


def internal_state(state: State) -> Json:
    """The answer to `getInternalState`, including hidden facts."""
    return {
        "scheduledTaskInterval": state.interval,
        "nextScheduledTaskTurn": state.next_task,
        "pendingSiphonTransmissions": state.pending,
        "turnCount": state.turn,
        "enemies": [internal_enemy(enemy) for enemy in state.enemies],
    }


def internal_enemy(enemy: Enemy) -> Json:
    """One enemy, including hidden facts."""
    return {
        **_place(enemy.cell),
        "type": _name(enemy.type),
        "hp": enemy.hp,
        "disabledTurns": enemy.disabled,
        "isStunned": enemy.stunned,
        "spawnedFromSiphon": enemy.from_siphon,
        "isFromScheduledTask": enemy.from_schedule,
    }


def _place(cell: int) -> Json:
    return {"row": row(cell), "col": col(cell)}


def _name(kind: EnemyType) -> str:
    return kind.name.lower()
