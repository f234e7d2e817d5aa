"""The format of recorded games as tables of fields: JSON lines, each a game.

A game is the state `initial` and a list of `steps`: `valid`, the valid actions before the step,
ascending; `action`; `after`, the state; `reward`, the 15 parts; booleans, of which `stage_advanced`
is true for the winning step too; and `order`, only if several enemies took part in an enemy turn:
for each sub-step all enemies in the order drawn, as indices into `after.enemies`.

In a state, zero and false values may be left out, except in `player` and at the top. `owned` is in
order of acquisition, `cells` begin with row 0, and `history` counts the states that the original
has saved for UNDO: one more than before means that the state after the step was saved.

Data of any other form is refused with its path. A value that is well formed but that the engine
cannot represent (a piece off the board, stage 9) is no format error: the state is then read as a
text that describes the value.
"""

import json
from typing import Any

from hackmatrix.game.conformance.field_tables import (
    OutOfRange,
    WrongField,
    fields,
    flag,
    list_of,
    one_of,
    read_number,
    whole,
    within,
)
from hackmatrix.game.conformance.recording import FLAGS, RecordedGame, RecordedState, RecordedStep
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.board import CELLS, SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.game.rules.stages import LAST_STAGE

# Reward parts that have another name in the recordings.
_PART_NAMES = {
    "distance_shaping": "distance",
    "death_penalty": "death",
    "damage_penalty": "damage",
    "siphon_death_penalty": "siphon_death",
}
_ROUNDING = 1e-6  # in units: tolerated rounding error of sums of floats


# --- games and steps -----------------------------------------------------------------------------


def read_game(line: bytes) -> RecordedGame:
    """Parses one line of a file; the saved states are not filled in.

    Raises:
        WrongField: the line is not a recorded game; the message names the field.
    """
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        raise WrongField("no JSON, so no recorded game") from None
    game = fields(raw, _GAME, _GAME.keys(), open=True)
    return RecordedGame(game["initial"], game["steps"])


def _step(raw: Any) -> RecordedStep:
    step = fields(raw, _STEP, _STEP.keys() - {"order"}, open=True)
    flags = {name: step[name] for name in FLAGS}
    order = step.get("order", [])
    return RecordedStep(step["valid"], step["action"], step["after"], step["reward"], flags, order)


def _action(raw: Any) -> int:
    action = whole(raw)
    if not 0 <= action < NUM_ACTIONS:
        raise WrongField(f"expected 0..{NUM_ACTIONS - 1}, got {action}")
    return action


def _reward(raw: Any) -> dict[str, float]:
    reward = fields(raw, _REWARD, _REWARD.keys())
    return {part: reward[_PART_NAMES.get(part, part)] for part in REWARD_PARTS}


def _units(raw: Any) -> float:
    """A reward in units: an int if it is a multiple of the unit, else a float."""
    units = read_number(raw) / UNIT
    return round(units) if abs(units - round(units)) < _ROUNDING else units


# --- states --------------------------------------------------------------------------------------


def _read_state(raw: Any) -> RecordedState:
    try:
        data = fields(raw, _STATE, _STATE.keys())
    except OutOfRange as fault:
        return RecordedState(str(fault), whole(raw.get("history")))
    history, flags = data.pop("history"), data.pop("flags")
    return RecordedState(State(dice=Dice(0, 0), **data, **flags), history)


def _state_flags(raw: Any) -> dict[str, bool]:
    return fields(raw, _STATE_FLAGS, set())


def _player(raw: Any) -> Player:
    player = fields(raw, _PLAYER, _PLAYER.keys())
    return Player(_pop_cell(player), **player)


def _cell(raw: Any) -> Cell:
    cell = fields(raw, _CELL, {"kind"})
    return Cell(cell.pop("kind"), holds_data=cell.pop("is_data", False), **cell)


def _enemy(raw: Any) -> Enemy:
    enemy = fields(raw, _ENEMY, {"type", "row", "col", "hp"})
    from_schedule = enemy.pop("from_task", False)
    return Enemy(cell=_pop_cell(enemy), from_schedule=from_schedule, **enemy)


def _transmission(raw: Any) -> Transmission:
    transmission = fields(raw, _TRANSMISSION, {"type", "row", "col", "turns"})
    from_schedule = transmission.pop("from_task", False)
    cell = _pop_cell(transmission)
    return Transmission(cell, from_schedule=from_schedule, **transmission)


def _pop_cell(data: dict[str, Any]) -> int:
    row, col = data.pop("row"), data.pop("col")
    return int(row * SIZE + col)


def _read_cell(raw: Any) -> int:
    row, col = list_of(_coordinate, 2)(raw)
    return row * SIZE + col


_coordinate = within(0, SIZE - 1)
_program = within(0, len(PROGRAMS) - 1)
_content = one_of({content.name.lower(): content for content in Content})
_enemy_type = one_of({kind.name.lower(): kind for kind in EnemyType})

_STATE_FLAGS = dict.fromkeys(("show", "calm", "step"), flag)
_PLAYER = {
    **dict.fromkeys(("row", "col"), _coordinate),
    **dict.fromkeys(("hp", "credits", "energy", "siphons", "attack", "score"), whole),
}
_CELL = {
    "kind": _content,
    "program": _program,
    **dict.fromkeys(("points", "spawn", "credits", "energy"), whole),
    **dict.fromkeys(("is_data", "siphoned", "center"), flag),
}
_ENEMY = {
    "type": _enemy_type,
    "last": _read_cell,
    **dict.fromkeys(("row", "col"), _coordinate),
    **dict.fromkeys(("hp", "disabled"), whole),
    **dict.fromkeys(("stunned", "from_task", "from_siphon"), flag),
}
_TRANSMISSION = {
    "type": _enemy_type,
    "turns": whole,
    **dict.fromkeys(("row", "col"), _coordinate),
    **dict.fromkeys(("from_task", "from_siphon"), flag),
}
_STATE = {
    "stage": within(1, LAST_STAGE),
    "player": _player,
    "flags": _state_flags,
    "exit": _read_cell,
    "owned": list_of(_program),
    "cells": list_of(_cell, CELLS),
    "enemies": list_of(_enemy),
    "transmissions": list_of(_transmission),
    **dict.fromkeys(("turn", "atk_uses", "interval", "next_task", "pending", "history"), whole),
}
_REWARD = {_PART_NAMES.get(part, part): _units for part in REWARD_PARTS}
_STEP = {
    "valid": list_of(whole),
    "action": _action,
    "after": _read_state,
    "reward": _reward,
    "order": list_of(list_of(whole)),
    **dict.fromkeys(FLAGS, flag),
}
_GAME = {"initial": _read_state, "steps": list_of(_step)}
