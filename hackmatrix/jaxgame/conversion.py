"""A game of this engine as one of `engine/` and back, for saving, replaying and comparing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

import jax
import numpy as np

from hackmatrix.engine import dice as engine_dice
from hackmatrix.engine import state as engine
from hackmatrix.jaxgame.bitboard import HALF, EnemySet, Set32, Set36, constant
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.jaxgame.planes import Coordinates
from hackmatrix.jaxgame.state import (
    AMOUNT_BITS,
    DIED,
    DISABLED_BITS,
    HP_BITS,
    INVALID_ACTION,
    LINE_BITS,
    RUNNING,
    SPAWN_BITS,
    TURNS_BITS,
    TYPE_BITS,
    VALUE_BITS,
    WON,
    Cells,
    Enemies,
    Player,
    Position,
    State,
    Transmissions,
)
from hackmatrix.rules.board import CELLS, SIZE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.programs import MAX_SAVED_STATES

_OVER = {
    None: RUNNING,
    engine.Ending.WON: WON,
    engine.Ending.DIED: DIED,
    engine.Ending.INVALID_ACTION: INVALID_ACTION,
}
_ENDING = {over: ending for ending, over in _OVER.items()}
_FACTS = ("stage", "interval", "next_task", "pending", "exit")
_PLAYER = ("cell", "hp", "credits", "energy", "siphons", "attack", "score")


def state_to_engine(state: State) -> engine.State:
    """The same game in plain Python; `state` is one game, its arrays on any device or NumPy."""
    one: Any = jax.tree.map(lambda x: np.asarray(x).tolist(), state)
    ring = [(one.saved_newest - age) % MAX_SAVED_STATES for age in range(one.saved_count)]
    saved = [_unpacked(one.saved[place]) for place in reversed(ring)]
    return engine.State(
        **_position_to_engine(one, one.exit),
        **{name: getattr(one, name) for name in _FACTS},
        dice=engine_dice.Dice(*one.dice),
        step=one.step,
        saved=[engine.Position(**_position_to_engine(old, one.exit)) for old in saved],
        over=_ENDING[one.over],
    )


def _unpacked(words: list[int]) -> Any:
    """As `state.unpacked`, of numbers."""
    return jax.tree.unflatten(jax.tree.structure(_EMPTY), words)


def _packed(position: engine.Position) -> list[int]:
    """As `state.packed`, of numbers."""
    return [int(x) for x in jax.tree.leaves(_position_from_engine(position))]


def _position_to_engine(position: Any, exit: int) -> dict[str, Any]:
    return {
        "player": engine.Player(*(getattr(position.player, name) for name in _PLAYER)),
        "cells": _cells_to_engine(position.cells, exit),
        "enemies": [engine.Enemy(**facts) for facts in _pieces(position.enemies)],
        "transmissions": [
            engine.Transmission(**facts) for facts in _pieces(position.transmissions)
        ],
        "owned": _numbers(position.acquired)[: position.owned.bit_count()],
        "turn": position.turn,
        "show": bool(position.show),
        "calm": bool(position.calm),
        "atk_uses": position.atk_uses,
    }


def _word(places: Any) -> Any:
    """A set as one number."""
    return places.word if isinstance(places, Set32) else places.low | places.high << HALF


def _numbers(planes: Any) -> list[int]:
    """The numbers of all places."""
    words = [_word(plane) for plane in planes]
    return [sum((word >> place & 1) << b for b, word in enumerate(words)) for place in range(CELLS)]


def _pieces(pieces: Any) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {}
    for name, values in _vars(pieces).items():
        if isinstance(values, Coordinates):
            rows, cols = _numbers(values.row), _numbers(values.col)
            columns[name] = [row * SIZE + col for row, col in zip(rows, cols, strict=True)]
        elif isinstance(values, Set32 | Set36):
            columns[name] = [bool(bit) for bit in _numbers((values,))]
        elif isinstance(values, tuple):
            columns[name] = _numbers(values)
    columns["type"] = [EnemyType(kind) for kind in columns["type"]]
    rows_of_facts = zip(*columns.values(), strict=True)
    return [dict(zip(columns, facts, strict=True)) for facts in rows_of_facts][: pieces.count]


def _cells_to_engine(cells: Cells, exit: int) -> list[engine.Cell]:
    fields = _vars(cells)
    sets = {name: _word(bits) for name, bits in fields.items() if isinstance(bits, Set36)}
    numbers = {name: _numbers(fields[name]) for name in ("credits", "energy", "value", "spawn")}
    board = []
    for index in range(CELLS):
        marks = {name: bool(bits >> index & 1) for name, bits in sets.items()}
        is_data = marks["data"]
        value = numbers["value"][index]
        is_program = marks["blocks"] and not is_data
        board.append(
            engine.Cell(
                _content(marks, index == exit),
                credits=numbers["credits"][index],
                energy=numbers["energy"][index],
                siphoned=marks["siphoned"],
                center=marks["center"],
                points=value if is_data else 0,
                program=value if is_program else 0,
                spawn=numbers["spawn"][index],
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
    """One game as NumPy scalars of the dtypes of `State`."""
    missing = MAX_SAVED_STATES - len(state.saved)
    saved = [_packed(position) for position in [*state.saved, *[_NO_POSITION] * missing]]
    words: Any = np.array(saved, np.uint32)
    return State(
        **_vars(_position_from_engine(state)),
        **_scalars(np.int32, state, _FACTS),
        dice=Dice(**_scalars(np.uint32, state.dice, Dice._fields)),
        **_scalars(np.bool_, state, ("step",)),
        enemies_at=constant(enemy.cell for enemy in state.enemies),
        coming_at=constant(piece.cell for piece in state.transmissions),
        saved=words,
        saved_count=_int32(len(state.saved)),
        saved_newest=_int32((len(state.saved) - 1) % MAX_SAVED_STATES),
        over=_int32(_OVER[state.over]),
    )


def _int32(number: int) -> Any:
    return np.int32(number)


def _scalars(dtype: Any, of: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: dtype(getattr(of, name)) for name in names}


def _position_from_engine(position: engine.Position) -> Position:
    owned: Any = np.uint32(sum(1 << number for number in position.owned))
    enemies, coming = position.enemies, position.transmissions
    return Position(
        player=Player(**_scalars(np.int32, position.player, _PLAYER)),
        cells=_cells_from_engine(position.cells),
        enemies=Enemies(
            count=_int32(len(enemies)),
            cell=_spots(_slots, [enemy.cell for enemy in enemies]),
            type=_planes(_slots, [enemy.type for enemy in enemies], TYPE_BITS),
            hp=_planes(_slots, [enemy.hp for enemy in enemies], HP_BITS),
            disabled=_planes(_slots, [enemy.disabled for enemy in enemies], DISABLED_BITS),
            stunned=_slots(enemy.stunned for enemy in enemies),
            from_schedule=_slots(enemy.from_schedule for enemy in enemies),
            from_siphon=_slots(enemy.from_siphon for enemy in enemies),
            last=_spots(_slots, [enemy.last for enemy in enemies]),
        ),
        transmissions=Transmissions(
            count=_int32(len(coming)),
            cell=_spots(_bits, [piece.cell for piece in coming]),
            turns=_planes(_bits, [piece.turns for piece in coming], TURNS_BITS),
            type=_planes(_bits, [piece.type for piece in coming], TYPE_BITS),
            from_schedule=_bits(piece.from_schedule for piece in coming),
            from_siphon=_bits(piece.from_siphon for piece in coming),
        ),
        owned=owned,
        acquired=_planes(_slots, position.owned, VALUE_BITS),
        **_scalars(np.int32, position, ("turn", "atk_uses")),
        **_scalars(np.bool_, position, ("show", "calm")),
    )


def _bits(members: Iterable[Any]) -> Any:
    """The set of the places where this is true."""
    return constant(place for place, member in enumerate(members) if member)


def _slots(members: Iterable[Any]) -> Any:
    word: Any = np.uint32(sum(1 << place for place, member in enumerate(members) if member))
    return EnemySet(word)


def _planes(make: Callable[[Iterable[Any]], Any], numbers: Sequence[int], size: int) -> Any:
    return tuple(make(number >> bit & 1 for number in numbers) for bit in range(size))


def _spots(make: Callable[[Iterable[Any]], Any], cells: list[int]) -> Coordinates[Any]:
    return Coordinates(
        _planes(make, [cell // SIZE for cell in cells], LINE_BITS),
        _planes(make, [cell % SIZE for cell in cells], LINE_BITS),
    )


def _cells_from_engine(cells: list[engine.Cell]) -> Cells:
    values = [cell.points if cell.is_data else cell.program for cell in cells]
    return Cells(
        blocks=_bits(cell.is_block for cell in cells),
        data=_bits(cell.is_data for cell in cells),
        questions=_bits(cell.content == Content.QUESTION for cell in cells),
        siphons=_bits(cell.content == Content.SIPHON for cell in cells),
        siphoned=_bits(cell.siphoned for cell in cells),
        center=_bits(cell.center for cell in cells),
        credits=_planes(_bits, [cell.credits for cell in cells], AMOUNT_BITS),
        energy=_planes(_bits, [cell.energy for cell in cells], AMOUNT_BITS),
        value=_planes(_bits, values, VALUE_BITS),
        spawn=_planes(_bits, [cell.spawn for cell in cells], SPAWN_BITS),
    )


_NO_POSITION = engine.Position(player=engine.Player(0))
_EMPTY = _position_from_engine(_NO_POSITION)
