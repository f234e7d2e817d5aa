"""The visible part of a game, as JSON data (sections 2 and 12 of the rules)."""

from typing import Any

from hackmatrix.game.engine.saving import (
    cell_to_dict,
    enemy_to_dict,
    state_to_dict,
    transmission_to_dict,
)
from hackmatrix.game.engine.spawning import line_of_fire
from hackmatrix.game.engine.state import Cell, Enemy, State, Transmission
from hackmatrix.game.rules.board import SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType

_UNSEEN = ("stream", "episode", "clock", "saved")  # the dice, and positions of the past
_PAST = ("last", "from_schedule")


def view(state: State, *, reveal: bool = False) -> dict[str, Any]:
    """The visible part of a game.

    Args:
        state: one game.
        reveal: also include hidden things, marked by `hidden: True`.

    Returns:
        The fields of `Game.to_dict` without the dice. Hidden things are left out: cryptogs out of
        sight, the content of question blocks, types of transmissions before SHOW. `saved` is the
        number of UNDO states. Additional fields: `fire`, the cells in the player's line of fire,
        and `last_seen`, where hidden cryptogs were last seen (flat indices, ascending).
    """
    facts = {name: fact for name, fact in state_to_dict(state).items() if name not in _UNSEEN}
    hidden = [enemy for enemy in state.enemies if not state.sees(enemy)]
    return {
        **facts,
        "saved": len(state.saved),
        "cells": [_cell(cell, reveal) for cell in state.cells],
        "enemies": [_enemy(state, enemy) for enemy in state.enemies if reveal or state.sees(enemy)],
        "transmissions": [_transmission(state, coming, reveal) for coming in state.transmissions],
        "fire": sorted(line_of_fire(state)),
        "last_seen": sorted({enemy.last for enemy in hidden if enemy.type == EnemyType.CRYPTOG}),
    }


def cell_of(piece: dict[str, Any]) -> int:
    """The cell that a piece of a view is on."""
    index: int = piece["row"] * SIZE + piece["col"]
    return index


def _cell(cell: Cell, reveal: bool) -> dict[str, Any]:
    facts = cell_to_dict(cell)
    if cell.is_block and not cell.siphoned:
        facts.pop("credits", None)
        facts.pop("energy", None)
    if cell.content != Content.QUESTION:
        return facts
    facts.pop("holds_data", None)
    if reveal or cell.siphoned:
        content = Content.DATA if cell.is_data else Content.PROGRAM
        marks = {} if cell.siphoned else {"hidden": True}
        return facts | {"content": content.name.lower()} | marks
    return {name: facts[name] for name in ("content", "center") if name in facts}


def _enemy(state: State, enemy: Enemy) -> dict[str, Any]:
    facts = {name: fact for name, fact in enemy_to_dict(enemy).items() if name not in _PAST}
    return facts if state.sees(enemy) else facts | {"hidden": True}


def _transmission(state: State, coming: Transmission, reveal: bool) -> dict[str, Any]:
    facts = transmission_to_dict(coming)
    for name in ("from_schedule", "from_siphon"):
        facts.pop(name, None)
    if state.show:
        return facts
    if reveal:
        return facts | {"hidden": True}
    facts.pop("type")
    return facts
