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

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeVar, cast

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.fields import format_value
from hackmatrix.game.engine.state import Cell, Enemy, Player, Position, State, Transmission
from hackmatrix.game.engine.undo import snapshot
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.game.rules.board import CELLS, SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, PROGRAMS, ProgramId
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.game.rules.stages import LAST_STAGE

# --- Reads JSON data by tables of fields; errors name the place: `enemies[2].hp: ...` -------------
#
# A reader takes a JSON value and returns the parsed value, or raises `WrongField`.


_T = TypeVar("_T")
Reader = Callable[[Any], _T]


class WrongField(ValueError):
    """A value that is not of the expected form."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, path)
        self.message, self.path = message, path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def inside(self, outer: str) -> Self:
        """The same error with the path extended by the object or list around it."""
        joint = "." if self.path and not self.path.startswith("[") else ""
        return type(self)(self.message, f"{outer}{joint}{self.path}")


class OutOfRange(WrongField):
    """A value of the right form that the engine cannot represent."""


def fields(
    raw: Any, readers: Mapping[str, Reader[Any]], required: Set[str], *, open: bool = False
) -> dict[str, Any]:
    """Reads a JSON object; with `open`, fields without a reader are ignored."""
    if type(raw) is not dict:
        raise WrongField(f"expected an object, got {format_value(raw)}")
    read: dict[str, Any] = {}
    for name, value in raw.items():
        reader = readers.get(name)
        if reader is not None:
            try:
                read[name] = reader(value)
            except WrongField as error:
                raise error.inside(name) from None
        elif not open:
            raise WrongField(f"unknown field {format_value(name)}")
    missing = [name for name in required if name not in read]
    if missing:
        raise WrongField("missing", min(missing))
    return read


def list_of(reader: Reader[_T], length: int | None = None) -> Reader[list[_T]]:
    """A reader for lists, of a fixed length if one is given."""

    def read(raw: Any) -> list[_T]:
        if type(raw) is not list:
            raise WrongField(f"expected a list, got {format_value(raw)}")
        if length is not None and len(raw) != length:
            raise WrongField(f"expected {length} values, got {len(raw)}")
        values = []
        for i, value in enumerate(raw):
            try:
                values.append(reader(value))
            except WrongField as error:
                raise error.inside(f"[{i}]") from None
        return values

    return read


def one_of(names: Mapping[str, _T]) -> Reader[_T]:
    """A reader that maps a name to its value."""

    def read(raw: Any) -> _T:
        if type(raw) is not str or raw not in names:
            raise WrongField(f"expected one of {', '.join(names)}, got {format_value(raw)}")
        return names[raw]

    return read


def within(low: int, high: int) -> Reader[int]:
    """A reader for integers; raises `OutOfRange` outside `low`..`high`."""

    def read(raw: Any) -> int:
        value = whole(raw)
        if not low <= value <= high:
            raise OutOfRange(f"expected {low}..{high}, got {value}")
        return value

    return read


def whole(raw: Any) -> int:
    """Reads an integer."""
    if type(raw) is not int:
        raise WrongField(f"expected a whole number, got {format_value(raw)}")
    return raw


def read_number(raw: Any) -> float:
    """Reads a number, as a float."""
    if type(raw) not in (int, float) or not abs(raw) <= sys.float_info.max:
        raise WrongField(f"expected a number, got {format_value(raw)}")
    return float(raw)


def flag(raw: Any) -> bool:
    """Reads a bool."""
    if type(raw) is not bool:
        raise WrongField(f"expected true or false, got {format_value(raw)}")
    return raw


# --- The content of a recorded game ---------------------------------------------------------------


UNDO = FIRST_PROGRAM + ProgramId.UNDO
FLAGS = ("success", "done", "stage_advanced", "won", "died")


@dataclass(slots=True)
class RecordedState:
    """A state as the original recorded it.

    Attributes:
        state: the state in the engine's form, without dice; or a text that describes the first
            value that the engine cannot represent.
        history: number of states that the original had saved for UNDO.
        undoable: the position that the original's UNDO would restore.
    """

    state: State | str
    history: int
    undoable: Position | None = None


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One action and its results.

    Attributes:
        valid: the valid actions before it.
        action: the action taken.
        after: the state after it, including the enemy turn.
        parts: the reward in units of 0.005, by the names of `rules.rewards`.
        flags: bools by the names of `FLAGS`.
        order: for each sub-step, the list positions of the enemies in the order they acted.
    """

    valid: list[int]
    action: int
    after: RecordedState
    parts: dict[str, float]
    flags: dict[str, bool]
    order: list[list[int]]


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """A recorded game: its first state and its steps."""

    initial: RecordedState
    steps: list[RecordedStep]


def rebuild_saved_states(game: RecordedGame) -> None:
    """Fills in, by following the game, the states that UNDO can restore after each step.

    `state.saved` becomes what the rules keep: the newest 4, cleared when a stage begins. `undoable`
    is the newest of all, which the original never clears.
    """
    ours: list[Position] = []
    original: list[Position] = []
    before = game.initial
    for step in game.steps:
        after = step.after
        if step.flags["stage_advanced"] and not step.flags["won"]:
            ours = []
        elif step.action == UNDO and step.flags["success"]:
            ours, original = ours[:-1], original[:-1]
        elif after.history == before.history + 1 and isinstance(after.state, State):
            saved = snapshot(after.state)
            ours, original = [*ours, saved][-MAX_SAVED_STATES:], [*original, saved]
        if isinstance(after.state, State):
            after.state.saved = ours
        after.undoable = original[-1] if original else None
        before = after


# --- The format of recorded games as tables of fields: JSON lines, each a game --------------------


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


# --- Reads files of recorded games: one JSON object a line, plain or gzipped ----------------------


_GZIP = b"\x1f\x8b"


def read_games(path: Path) -> Iterator[RecordedGame]:
    """Yields the games of a file.

    Raises:
        UserError: the file is missing, corrupt or of another format; the message names the place.
    """
    line_number = 0  # line number, from 1
    try:
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            lines = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if packed else file
            for line in lines:
                line_number += 1
                game = read_game(line)
                rebuild_saved_states(game)
                yield game
    except WrongField as error:
        raise UserError(f"{path}: line {line_number}: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise UserError(f"{path}: corrupt gzip file: {error}") from None
    if line_number == 0:
        raise UserError(f"{path}: no recorded games in it")
