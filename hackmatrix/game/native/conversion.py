"""Converts a game of the native engine to one of `game/engine/` and back."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hackmatrix.game.engine import state as engine
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.native.batch import check
from hackmatrix.game.native.layout import (
    CELL_NUMBERS,
    CELL_SETS,
    NAMES,
    SAVED_POSITIONS,
    STATE,
    Array,
    Games,
    empty_games,
)
from hackmatrix.game.rules.board import CELLS, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import MAX_SAVED_STATES

ENDINGS = (None, *engine.Ending)  # by the number of `Ending` in `state.hpp`
_SCALARS = ("turn", "show", "calm", "atk_uses")
_FACTS = ("stage", "interval", "next_task", "pending", "exit", "step")


def state_to_engine(games: Games, index: int) -> engine.State:
    """One of the games as a state of the Python engine."""
    state, saved = games.states[index], games.saved[index]["positions"]
    exit, newest = int(state["exit"]), int(state["newest_saved"])
    ages = reversed(range(int(state["saved"])))
    return engine.State(
        **_position_to_engine(state["position"], exit),
        **_plain(state, _FACTS),
        dice=Dice(**_plain(state["dice"], NAMES["dice"])),
        saved=[
            engine.Position(**_position_to_engine(saved[(newest - age) % MAX_SAVED_STATES], exit))
            for age in ages
        ],
        over=ENDINGS[state["over"]],
    )


def game_to_engine(state: Array, saved: Array) -> engine.State:
    """A game in the bytes uint8[size] of its structs as a state of the Python engine."""
    zero = np.zeros(1, np.int32)
    return state_to_engine(Games(state.view(STATE), saved.view(SAVED_POSITIONS), zero, zero), 0)


def _plain(struct: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: struct[name].item() for name in names}


def _pieces(pieces: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    listed = pieces["pieces"][: pieces["count"]].tolist()
    facts = [dict(zip(names, values, strict=True)) for values in listed]
    return [each | {"type": EnemyType(each["type"])} for each in facts]


def _position_to_engine(position: Any, exit: int) -> dict[str, Any]:
    return {
        "player": engine.Player(**_plain(position["player"], NAMES["player"])),
        "cells": _cells_to_engine(position["cells"], exit),
        "enemies": [
            engine.Enemy(**facts) for facts in _pieces(position["enemies"], NAMES["enemy"])
        ],
        "transmissions": [
            engine.Transmission(**facts)
            for facts in _pieces(position["transmissions"], NAMES["transmission"])
        ],
        "owned": position["acquired"][: position["owned"].item().bit_count()].tolist(),
        **_plain(position, _SCALARS),
    }


def _cells_to_engine(cells: Any, exit: int) -> list[engine.Cell]:
    sets, numbers = _plain(cells, CELL_SETS), {n: cells[n].tolist() for n in CELL_NUMBERS}
    board = []
    for index in range(CELLS):
        marks = {name: bool(word >> index & 1) for name, word in sets.items()}
        is_data, value = marks["data"], numbers["value"][index]
        cell = engine.Cell(
            Content.of_marks(marks, is_exit=index == exit),
            siphoned=marks["siphoned"],
            center=marks["center"],
            points=value if is_data else 0,
            program=0 if is_data else value,
            holds_data=is_data and marks["questions"],
            **{name: numbers[name][index] for name in ("credits", "energy", "spawn")},
        )
        board.append(cell)
    return board


def games_from_engine(states: list[engine.State]) -> Games:
    """Games from states of the Python engine; return and length of their episodes are 0.

    Raises:
        ValueError: a state is not legal.
    """
    games = empty_games(len(states))
    for index, state in enumerate(states):
        game = games.states[index]
        _write_position(game["position"], state)
        _write(game, state, _FACTS)
        _write(game["dice"], state.dice, NAMES["dice"])
        game["over"] = ENDINGS.index(state.over)
        game["saved"] = len(state.saved)
        game["newest_saved"] = (len(state.saved) - 1) % MAX_SAVED_STATES
        for i, position in enumerate(state.saved):
            _write_position(games.saved[index]["positions"][i], position)
    check(games)
    return games


def _write(struct: Any, source: object, names: Iterable[str]) -> None:
    for name in names:
        struct[name] = getattr(source, name)


def _write_position(struct: Any, position: engine.Position) -> None:
    _write(struct["player"], position.player, NAMES["player"])
    _write(struct, position, _SCALARS)
    struct["owned"] = sum(1 << program for program in position.owned)
    struct["acquired"][: len(position.owned)] = position.owned
    _write_cells(struct["cells"], position.cells)
    for name, names in (("enemies", NAMES["enemy"]), ("transmissions", NAMES["transmission"])):
        pieces = getattr(position, name)
        struct[name]["count"] = len(pieces)
        for index, piece in enumerate(pieces):
            _write(struct[name]["pieces"][index], piece, names)


def _write_cells(struct: Any, cells: list[engine.Cell]) -> None:
    members: dict[str, list[bool]] = {
        "blocks": [cell.is_block for cell in cells],
        "data": [cell.is_data for cell in cells],
        "questions": [cell.content == Content.QUESTION for cell in cells],
        "siphons": [cell.content == Content.SIPHON for cell in cells],
        "siphoned": [cell.siphoned for cell in cells],
        "center": [cell.center for cell in cells],
    }
    for name, flags in members.items():
        struct[name] = sum(1 << cell for cell, flag in enumerate(flags) if flag)
    for name in ("credits", "energy", "spawn"):
        struct[name] = [getattr(cell, name) for cell in cells]
    struct["value"] = [cell.points if cell.is_data else cell.program for cell in cells]
