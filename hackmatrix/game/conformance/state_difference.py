"""Finds the first difference between a state of the engine and the recorded one."""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from hackmatrix.game.engine.state import Cell, Enemy, Player, Position, State, Transmission
from hackmatrix.game.rules.board import col, row
from hackmatrix.game.rules.enemies import EnemyType

_POSITION = [f.name for f in fields(Position)]
# The fields that a recording contains. It lacks the dice, the events and how the game ended.
_STATE = ["stage", "exit", "interval", "next_task", "pending", "step", *_POSITION, "saved"]
_PARTS = {kind: [f.name for f in fields(kind)] for kind in (Cell, Player, Enemy, Transmission)}
_CELL_FIELDS = ("exit", "cell", "last")


def first_difference(engine: State, recorded: State) -> str | None:
    """Path and values of the first field that differs, None if there is none."""
    return next(_in_fields(_STATE, "", engine, recorded), None)


def _in_fields(names: Iterable[str], path: str, engine: Any, recorded: Any) -> Iterator[str]:
    for name in names:
        yield from _in_value(name, path + name, getattr(engine, name), getattr(recorded, name))


def _in_value(name: str, path: str, engine: Any, recorded: Any) -> Iterator[str]:
    if engine is recorded or engine == recorded:
        return
    if isinstance(engine, list):
        yield from _in_list(name, path, engine, recorded)
    elif isinstance(engine, Position):
        yield from _in_fields(_POSITION, f"{path}.", engine, recorded)
    elif type(engine) in _PARTS:
        names = _PARTS[type(engine)]
        if isinstance(engine, Enemy) and not engine.type == recorded.type == EnemyType.CRYPTOG:
            names = [name for name in names if name != "last"]  # only cryptogs have one
        yield from _in_fields(names, f"{path}.", engine, recorded)
    else:
        yield f"{path}: engine {_format(name, engine)}, recorded {_format(name, recorded)}"


def _in_list(name: str, path: str, engine: list[Any], recorded: list[Any]) -> Iterator[str]:
    if len(engine) != len(recorded):
        yield f"{path}: engine has {len(engine)}, recorded {len(recorded)}"
    for i, (a, b) in enumerate(zip(engine, recorded, strict=False)):
        place = _format("cell", i) if name == "cells" else str(i)
        yield from _in_value("", f"{path}[{place}]", a, b)


def _format(name: str, value: Any) -> str:
    if name in _CELL_FIELDS:
        return f"{row(value)},{col(value)}"
    return getattr(value, "name", str(value)).lower()
