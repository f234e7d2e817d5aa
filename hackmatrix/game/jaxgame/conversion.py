"""Converts a game of this engine to one of `game/engine/` and back, to save, replay and compare it.

It is the only file that knows both engines' representation of a state.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

import jax
import numpy as np

from hackmatrix.game.engine import dice as engine_dice
from hackmatrix.game.engine import state as engine
from hackmatrix.game.jaxgame import undo
from hackmatrix.game.jaxgame.bitboard import HALF, EnemySet, Set32, Set36, constant
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.planes import Coordinates
from hackmatrix.game.jaxgame.state import (
    NUM_PLANES,
    Cells,
    Ending,
    Enemies,
    Player,
    Position,
    State,
    Transmissions,
)
from hackmatrix.game.rules.board import CELLS, SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType

_ENDING = {Ending.RUNNING: None, **{Ending[ending.name]: ending for ending in engine.Ending}}
_OVER = {ending: over for over, ending in _ENDING.items()}
_FACTS = ("stage", "interval", "next_task", "pending", "exit")
_PLAYER = ("cell", "hp", "credits", "energy", "siphons", "attack", "score")


def state_to_engine(state: State) -> engine.State:
    """Converts to a state of the Python engine; the arrays are on any device, or NumPy's.

    Raises:
        ValueError: there are several games in the state.
    """
    if games := np.shape(state.over):
        raise ValueError(
            f"the state holds {' x '.join(map(str, games))} games; take one of them, such as "
            "jax.tree.map(lambda x: x[0], state)"
        )
    one = _plain(state)
    saved = [_plain(position) for position in undo.positions_of(state.saved, like=_EMPTY)]
    return engine.State(
        **_position_to_engine(one, one.exit),
        **{name: getattr(one, name) for name in _FACTS},
        dice=engine_dice.Dice(*one.dice),
        step=one.step,
        saved=[engine.Position(**_position_to_engine(old, one.exit)) for old in saved],
        over=_ENDING[one.over],
    )


def _plain(tree: Any) -> Any:
    """The tree with Python numbers instead of arrays."""
    return jax.tree.map(lambda x: np.asarray(x).tolist(), tree)


def _position_to_engine(position: Any, exit: int) -> dict[str, Any]:
    return {
        "player": engine.Player(*(getattr(position.player, name) for name in _PLAYER)),
        "cells": _cells_to_engine(position.cells, exit),
        "enemies": [engine.Enemy(**facts) for facts in _pieces(position.enemies)],
        "transmissions": [
            engine.Transmission(**facts) for facts in _pieces(position.transmissions)
        ],
        "owned": _values_of(position.acquired)[: position.owned.bit_count()],
        "turn": position.turn,
        "show": bool(position.show),
        "calm": bool(position.calm),
        "atk_uses": position.atk_uses,
    }


def _word(bits: Any) -> Any:
    """A set of Python numbers as one int, with bit i for index i."""
    return bits.word if isinstance(bits, Set32) else bits.low | bits.high << HALF


def _values_of(planes: Any) -> list[int]:
    """The value at each index, as a list."""
    values = [0] * CELLS
    for b, plane in enumerate(planes):
        word = _word(plane)
        while word:
            lowest = word & -word
            values[lowest.bit_length() - 1] |= 1 << b
            word ^= lowest
    return values


def _pieces(pieces: Any) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {}
    for name, values in _vars(pieces).items():
        if isinstance(values, Coordinates):
            rows, cols = _values_of(values.row), _values_of(values.col)
            columns[name] = [row * SIZE + col for row, col in zip(rows, cols, strict=True)]
        elif isinstance(values, Set32 | Set36):
            columns[name] = [bool(bit) for bit in _values_of((values,))]
        elif isinstance(values, tuple):
            columns[name] = _values_of(values)
    columns["type"] = [EnemyType(enemy_type) for enemy_type in columns["type"]]
    rows_of_facts = zip(*columns.values(), strict=True)
    return [dict(zip(columns, facts, strict=True)) for facts in rows_of_facts][: pieces.count]


def _cells_to_engine(cells: Cells, exit: int) -> list[engine.Cell]:
    fields = _vars(cells)
    sets = {name: _word(bits) for name, bits in fields.items() if isinstance(bits, Set36)}
    values = {name: _values_of(fields[name]) for name in ("credits", "energy", "value", "spawn")}
    board = []
    for index in range(CELLS):
        marks = {name: bool(bits >> index & 1) for name, bits in sets.items()}
        is_data = marks["data"]
        value = values["value"][index]
        is_program = marks["blocks"] and not is_data
        board.append(
            engine.Cell(
                Content.of_marks(marks, is_exit=index == exit),
                credits=values["credits"][index],
                energy=values["energy"][index],
                siphoned=marks["siphoned"],
                center=marks["center"],
                points=value if is_data else 0,
                program=value if is_program else 0,
                spawn=values["spawn"][index],
                holds_data=marks["questions"] and is_data,
            )
        )
    return board


def _vars(tree: Any) -> dict[str, Any]:
    return {f.name: getattr(tree, f.name) for f in fields(tree)}


def state_from_engine(state: engine.State) -> State:
    """Converts a state of the Python engine.

    The leaves are NumPy scalars with the dtypes of `State`.
    """
    return State(
        **_vars(_position_from_engine(state)),
        **_scalars(np.int32, state, _FACTS),
        dice=Dice(**_scalars(np.uint32, state.dice, Dice._fields)),
        **_scalars(np.bool_, state, ("step",)),
        enemies_at=constant(enemy.cell for enemy in state.enemies),
        transmissions_at=constant(piece.cell for piece in state.transmissions),
        saved=undo.saved_from([_position_from_engine(old) for old in state.saved], like=_EMPTY),
        over=_int32(_OVER[state.over]),
    )


def _int32(value: int) -> Any:
    return np.int32(value)


def _scalars(dtype: Any, of: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: dtype(getattr(of, name)) for name in names}


def _position_from_engine(position: engine.Position) -> Position:
    owned: Any = np.uint32(sum(1 << program for program in position.owned))
    enemies, coming = position.enemies, position.transmissions
    return Position(
        player=Player(**_scalars(np.int32, position.player, _PLAYER)),
        cells=_cells_from_engine(position.cells),
        enemies=Enemies(
            count=_int32(len(enemies)),
            cell=_coordinates(_set32, [enemy.cell for enemy in enemies]),
            type=_planes_of(_set32, [enemy.type for enemy in enemies], "type"),
            hp=_planes_of(_set32, [enemy.hp for enemy in enemies], "hp"),
            disabled=_planes_of(_set32, [enemy.disabled for enemy in enemies], "disabled"),
            stunned=_set32(enemy.stunned for enemy in enemies),
            from_schedule=_set32(enemy.from_schedule for enemy in enemies),
            from_siphon=_set32(enemy.from_siphon for enemy in enemies),
            last=_coordinates(_set32, [enemy.last for enemy in enemies]),
        ),
        transmissions=Transmissions(
            count=_int32(len(coming)),
            cell=_coordinates(_set36, [piece.cell for piece in coming]),
            turns=_planes_of(_set36, [piece.turns for piece in coming], "turns"),
            type=_planes_of(_set36, [piece.type for piece in coming], "type"),
            from_schedule=_set36(piece.from_schedule for piece in coming),
            from_siphon=_set36(piece.from_siphon for piece in coming),
        ),
        owned=owned,
        acquired=_planes_of(_set32, position.owned, "acquired"),
        **_scalars(np.int32, position, ("turn", "atk_uses")),
        **_scalars(np.bool_, position, ("show", "calm")),
    )


def _set36(members: Iterable[Any]) -> Any:
    """The set of the indices whose member is true."""
    return constant(index for index, member in enumerate(members) if member)


def _set32(members: Iterable[Any]) -> Any:
    word: Any = np.uint32(sum(1 << index for index, member in enumerate(members) if member))
    return EnemySet(word)


def _planes_of(make: Callable[[Iterable[Any]], Any], values: Sequence[int], field: str) -> Any:
    bits = range(NUM_PLANES[field])
    return tuple(make(value >> bit & 1 for value in values) for bit in bits)


def _coordinates(make: Callable[[Iterable[Any]], Any], cells: list[int]) -> Coordinates[Any]:
    return Coordinates(
        _planes_of(make, [cell // SIZE for cell in cells], "row"),
        _planes_of(make, [cell % SIZE for cell in cells], "col"),
    )


def _cells_from_engine(cells: list[engine.Cell]) -> Cells:
    values = [cell.points if cell.is_data else cell.program for cell in cells]
    return Cells(
        blocks=_set36(cell.is_block for cell in cells),
        data=_set36(cell.is_data for cell in cells),
        questions=_set36(cell.content == Content.QUESTION for cell in cells),
        siphons=_set36(cell.content == Content.SIPHON for cell in cells),
        siphoned=_set36(cell.siphoned for cell in cells),
        center=_set36(cell.center for cell in cells),
        credits=_planes_of(_set36, [cell.credits for cell in cells], "credits"),
        energy=_planes_of(_set36, [cell.energy for cell in cells], "energy"),
        value=_planes_of(_set36, values, "value"),
        spawn=_planes_of(_set36, [cell.spawn for cell in cells], "spawn"),
    )


_EMPTY = _position_from_engine(engine.Position(player=engine.Player(0)))
