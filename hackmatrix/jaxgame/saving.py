"""A game of this engine as one of `engine/` and back, for saving, replaying and comparing."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import jax
import numpy as np

from hackmatrix.engine import dice as engine_dice
from hackmatrix.engine import state as engine
from hackmatrix.jaxgame.bitboard import Bits, constant
from hackmatrix.jaxgame.dice import Dice
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
)
from hackmatrix.rules.board import CELLS, Content
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType
from hackmatrix.rules.programs import MAX_SAVED_STATES, PROGRAMS

_OVER = {
    None: RUNNING,
    engine.Ending.WON: WON,
    engine.Ending.DIED: DIED,
    engine.Ending.INVALID_ACTION: INVALID_ACTION,
}
_ENDING = {over: ending for ending, over in _OVER.items()}
_FACTS = ("stage", "interval", "next_task", "pending", "exit")
_PLAYER = ("cell", "hp", "credits", "energy", "siphons", "attack", "score")
_ENEMY = ("cell", "type", "hp", "disabled", "stunned", "from_schedule", "from_siphon", "last")
_TRANSMISSION = ("cell", "turns", "type", "from_schedule", "from_siphon")


def state_to_engine(state: State) -> engine.State:
    """The same game in plain Python; `state` is one game, its arrays on any device or NumPy."""
    state = jax.tree.map(np.asarray, state)
    ring = [(int(state.saved_newest) - age) % MAX_SAVED_STATES for age in range(MAX_SAVED_STATES)]
    kept = ring[: int(state.saved_count)]
    facts: dict[str, Any] = {name: int(getattr(state, name)) for name in _FACTS}
    return engine.State(
        **_position_to_engine(state, int(state.exit)),
        **facts,
        dice=engine_dice.Dice(*(int(word) for word in state.dice)),
        step=bool(state.step),
        saved=[
            engine.Position(**_position_to_engine(_at(state.saved, place), int(state.exit)))
            for place in reversed(kept)
        ],
        over=_ENDING[int(state.over)],
    )


def _at(tree: Any, place: int) -> Any:
    return jax.tree.map(lambda x: x[place], tree)


def _position_to_engine(position: Position, exit: int) -> dict[str, Any]:
    enemies, coming = position.enemies, position.transmissions
    owned = int(position.owned).bit_count()
    return {
        "player": engine.Player(*(int(getattr(position.player, name)) for name in _PLAYER)),
        "cells": _cells_to_engine(position.cells, exit),
        "enemies": [engine.Enemy(**facts) for facts in _pieces(enemies, _ENEMY)],
        "transmissions": [engine.Transmission(**facts) for facts in _pieces(coming, _TRANSMISSION)],
        "owned": [int(number) for number in position.acquired[:owned]],
        "turn": int(position.turn),
        "show": bool(position.show),
        "calm": bool(position.calm),
        "atk_uses": int(position.atk_uses),
    }


def _pieces(pieces: Enemies | Transmissions, names: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = [getattr(pieces, name).tolist() for name in names]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [row | {"type": EnemyType(row["type"])} for row in rows[: int(pieces.count)]]


def _cells_to_engine(cells: Cells, exit: int) -> list[engine.Cell]:
    sets = {
        name: int(bits.low) | int(bits.high) << CELLS // 2
        for name, bits in _vars(cells).items()
        if isinstance(bits, Bits)
    }
    board = []
    for index in range(CELLS):
        marks = {name: bool(bits >> index & 1) for name, bits in sets.items()}
        content = _content(marks, index == exit)
        is_data = marks["data"]
        value = int(cells.value[index])
        is_program = marks["blocks"] and not is_data
        board.append(
            engine.Cell(
                content,
                credits=int(cells.credits[index]),
                energy=int(cells.energy[index]),
                siphoned=marks["siphoned"],
                center=marks["center"],
                points=value if is_data else 0,
                program=value if is_program else 0,
                spawn=int(cells.spawn[index]),
                holds_data=marks["questions"] and is_data,
            )
        )
    return board


def _vars(tree: Any) -> dict[str, Any]:
    return {f.name: getattr(tree, f.name) for f in fields(tree)}


def _content(marks: dict[str, bool], is_exit: bool) -> Content:
    if marks["questions"]:
        return Content.QUESTION
    if marks["blocks"]:
        return Content.DATA if marks["data"] else Content.PROGRAM
    if is_exit:
        return Content.EXIT
    return Content.SIPHON if marks["siphons"] else Content.EMPTY


def state_from_engine(state: engine.State) -> State:
    """One game as NumPy arrays of the dtypes of `State`."""
    empty = engine.Position(player=engine.Player(0))
    saved = [_position_from_engine(position) for position in state.saved]
    ring = saved + [_position_from_engine(empty)] * (MAX_SAVED_STATES - len(saved))
    dice = state.dice
    return State(
        **_vars(_position_from_engine(state)),
        **_scalars(np.int32, state, _FACTS),
        dice=Dice(**_scalars(np.uint32, dice, Dice._fields)),
        **_scalars(np.bool_, state, ("step",)),
        saved=jax.tree.map(lambda *leaves: np.stack(leaves), *ring),
        saved_count=_int32(len(saved)),
        saved_newest=_int32((len(saved) - 1) % MAX_SAVED_STATES),
        over=_int32(_OVER[state.over]),
    )


def _int32(number: int) -> Any:
    return np.int32(number)


def _scalars(dtype: Any, of: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: dtype(getattr(of, name)) for name in names}


def _position_from_engine(position: engine.Position) -> Position:
    acquired: Any = np.zeros(len(PROGRAMS), np.int8)
    acquired[: len(position.owned)] = position.owned
    owned: Any = np.uint32(sum(1 << number for number in position.owned))
    return Position(
        player=Player(**_scalars(np.int32, position.player, _PLAYER)),
        cells=_cells_from_engine(position.cells),
        enemies=Enemies(
            count=_int32(len(position.enemies)),
            **_columns(position.enemies, _ENEMY, MAX_ENEMIES),
        ),
        transmissions=Transmissions(
            count=_int32(len(position.transmissions)),
            **_columns(position.transmissions, _TRANSMISSION, CELLS),
        ),
        owned=owned,
        acquired=acquired,
        **_scalars(np.int32, position, ("turn", "atk_uses")),
        **_scalars(np.bool_, position, ("show", "calm")),
    )


def _columns(pieces: list[Any], names: tuple[str, ...], size: int) -> dict[str, Any]:
    flags = {"stunned", "from_schedule", "from_siphon"}
    columns = {}
    for name in names:
        dtype = np.bool_ if name in flags else np.int16 if name == "turns" else np.int8
        columns[name] = np.zeros(size, dtype)
        columns[name][: len(pieces)] = [getattr(piece, name) for piece in pieces]
    return columns


def _cells_from_engine(cells: list[engine.Cell]) -> Cells:
    def where(holds: Any) -> Bits:
        return constant(index for index, cell in enumerate(cells) if holds(cell))

    def numbers(values: Any) -> Any:
        return np.array([values(cell) for cell in cells], np.int8)

    return Cells(
        blocks=where(lambda cell: cell.is_block),
        data=where(lambda cell: cell.is_data),
        questions=where(lambda cell: cell.content == Content.QUESTION),
        siphons=where(lambda cell: cell.content == Content.SIPHON),
        siphoned=where(lambda cell: cell.siphoned),
        center=where(lambda cell: cell.center),
        credits=numbers(lambda cell: cell.credits),
        energy=numbers(lambda cell: cell.energy),
        value=numbers(lambda cell: cell.points if cell.is_data else cell.program),
        spawn=numbers(lambda cell: cell.spawn),
    )
