"""Converts a whole state to JSON data and back; errors name the illegal field."""

from typing import Any

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.fields import Fields, IllegalStateError, format_value
from hackmatrix.game.engine.state import Cell, Ending, Enemy, Player, Position, State, Transmission
from hackmatrix.game.rules.board import (
    CELLS,
    LIMIT,
    MAX_POINTS,
    MAX_RESOURCE,
    MAX_SPAWN,
    Content,
    col,
    row,
)
from hackmatrix.game.rules.chance import MAX_WORD
from hackmatrix.game.rules.enemies import MAX_DISABLED, MAX_ENEMIES, MAX_HP, EnemyType
from hackmatrix.game.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAM_INDEX, PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

# --- to data -------------------------------------------------------------------------------------


def state_to_dict(state: State) -> dict[str, Any]:
    """The complete state; zero, false and empty fields of cells and pieces are left out."""
    return {
        "stream": state.dice.stream,
        "episode": state.dice.episode,
        "clock": state.dice.clock,
        "stage": state.stage,
        "exit": [row(state.exit), col(state.exit)],
        "interval": state.interval,
        "next_task": state.next_task,
        "pending": state.pending,
        "step": state.step,
        "over": state.over.value if state.over else None,
        **position_to_dict(state),
        "saved": [position_to_dict(position) for position in state.saved],
    }


def position_to_dict(position: Position) -> dict[str, Any]:
    """The position: the part of the state that UNDO saves and restores."""
    player = position.player
    return {
        "turn": position.turn,
        "show": position.show,
        "calm": position.calm,
        "atk_uses": position.atk_uses,
        "player": {
            **_coordinates(player.cell),
            "hp": player.hp,
            "credits": player.credits,
            "energy": player.energy,
            "siphons": player.siphons,
            "attack": player.attack,
            "score": player.score,
        },
        "owned": [PROGRAMS[program].name for program in position.owned],
        "cells": [cell_to_dict(cell) for cell in position.cells],
        "enemies": [enemy_to_dict(enemy) for enemy in position.enemies],
        "transmissions": [transmission_to_dict(t) for t in position.transmissions],
    }


def cell_to_dict(cell: Cell) -> dict[str, Any]:
    """The fields of a cell; `content` is always present, `program` wherever there is one."""
    facts: dict[str, Any] = {"content": cell.content.name.lower()}
    if cell.is_program:
        facts["program"] = PROGRAMS[cell.program].name
    for name in ("credits", "energy", "siphoned", "center", "points", "spawn", "holds_data"):
        if getattr(cell, name):
            facts[name] = getattr(cell, name)
    return facts


def enemy_to_dict(enemy: Enemy) -> dict[str, Any]:
    """The fields of an enemy; `last` is present for cryptogs only."""
    facts = {"type": enemy.type.name.lower(), **_coordinates(enemy.cell), "hp": enemy.hp}
    for name in ("disabled", "stunned", "from_schedule", "from_siphon"):
        if getattr(enemy, name):
            facts[name] = getattr(enemy, name)
    if enemy.type == EnemyType.CRYPTOG:
        facts["last"] = [row(enemy.last), col(enemy.last)]
    return facts


def transmission_to_dict(transmission: Transmission) -> dict[str, Any]:
    """The fields of a transmission."""
    facts = {
        "type": transmission.type.name.lower(),
        **_coordinates(transmission.cell),
        "turns": transmission.turns,
    }
    for name in ("from_schedule", "from_siphon"):
        if getattr(transmission, name):
            facts[name] = True
    return facts


def _coordinates(cell: int) -> dict[str, Any]:
    return {"row": row(cell), "col": col(cell)}


# --- from data -----------------------------------------------------------------------------------


def state_from_dict(data: Any) -> State:
    """Reads a complete state.

    `stream`, `episode` and `clock` may be left out (0), and so may every flag, `atk_uses`, `saved`
    and `over`.

    Raises:
        IllegalStateError: the state is not legal (section 2); the message names the field.
    """
    fields = Fields(data, "")
    dice = Dice(*(fields.integer(name, 0, MAX_WORD, 0) for name in ("stream", "episode", "clock")))
    over = fields.take("over", None)
    if over is not None and over not in list(Ending):
        fields.refuse("over", over, f"expected null or one of {', '.join(Ending)}")
    exit = fields.cell("exit")
    state = State(
        **position_fields(fields, exit, dead=over == Ending.DIED),
        dice=dice,
        exit=exit,
        stage=fields.integer("stage", 1, LAST_STAGE),
        interval=fields.integer("interval", 0, LIMIT),
        next_task=fields.integer("next_task", 0, LIMIT),
        pending=fields.integer("pending", 0, LIMIT),
        step=fields.flag("step"),
        saved=[
            saved_from_dict(saved, path, exit, dead=over == Ending.DIED)
            for saved, path in fields.items("saved", 0, MAX_SAVED_STATES, [])
        ],
        over=Ending(over) if over else None,
    )
    fields.end()
    return state


def saved_from_dict(data: Any, path: str, exit: int, *, dead: bool) -> Position:
    """Reads a saved UNDO state; `dead` allows 0 hp, for games that the player lost."""
    fields = Fields(data, path)
    position = Position(**position_fields(fields, exit, dead=dead))
    fields.end()
    return position


def position_fields(fields: Fields, exit: int, *, dead: bool) -> dict[str, Any]:
    """Reads the fields of a position, the part of the state that UNDO saves and restores.

    Args:
        fields: the fields to consume.
        exit: the cell that must hold the exit.
        dead: whether the player may have 0 hp.
    """
    cells = [cell_from_dict(cell, path) for cell, path in fields.items("cells", CELLS, CELLS)]
    exits = [index for index, cell in enumerate(cells) if cell.content == Content.EXIT]
    if exits != [exit]:
        path = f"{fields.prefix}cells"
        raise IllegalStateError(
            f"{path}: the exit must be on the cell `exit` names and nowhere else"
        )
    return {
        "player": player_from_dict(fields.take("player"), f"{fields.prefix}player", dead=dead),
        "cells": cells,
        "enemies": [
            enemy_from_dict(enemy, path) for enemy, path in fields.items("enemies", 0, MAX_ENEMIES)
        ],
        "transmissions": _transmissions(fields, cells),
        "owned": _owned(fields),
        "turn": fields.integer("turn", 0, LIMIT),
        "show": fields.flag("show"),
        "calm": fields.flag("calm"),
        "atk_uses": fields.integer("atk_uses", 0, MAX_ATK_USES, 0),
    }


def player_from_dict(data: Any, path: str, *, dead: bool) -> Player:
    """Reads the player."""
    fields = Fields(data, path)
    player = Player(
        fields.coordinates(),
        hp=fields.integer("hp", 0 if dead else 1, PLAYER_HP),
        credits=fields.integer("credits", 0, LIMIT),
        energy=fields.integer("energy", 0, LIMIT),
        siphons=fields.integer("siphons", 0, LIMIT),
        attack=fields.integer("attack", 1, LIMIT),
        score=fields.integer("score", 0, LIMIT),
    )
    fields.end()
    return player


def cell_from_dict(data: Any, path: str) -> Cell:
    """Reads a cell; fields of blocks are refused on other cells."""
    fields = Fields(data, path)
    cell = Cell(
        Content[fields.choice("content", (c.name.lower() for c in Content)).upper()],
        credits=fields.integer("credits", 0, MAX_RESOURCE, 0),
        energy=fields.integer("energy", 0, MAX_RESOURCE, 0),
        siphoned=fields.flag("siphoned"),
        center=fields.flag("center"),
    )
    if cell.credits and cell.energy:
        fields.refuse("energy", cell.energy, "a cell has credits or energy, not both")
    if cell.content == Content.QUESTION:
        cell.holds_data = fields.flag("holds_data")
    if cell.is_block:
        cell.spawn = fields.integer("spawn", 0, MAX_SPAWN, 0)
    if cell.is_data:
        cell.points = fields.integer("points", 0, MAX_POINTS, 0)
    if cell.is_program:
        cell.program = PROGRAM_INDEX[fields.choice("program", PROGRAM_INDEX)]
    fields.end()
    return cell


def enemy_from_dict(data: Any, path: str) -> Enemy:
    """Reads an enemy."""
    fields = Fields(data, path)
    enemy_type = _enemy_type(fields)
    cell = fields.coordinates()
    enemy = Enemy(
        enemy_type,
        cell,
        hp=fields.integer("hp", 1, MAX_HP[enemy_type]),
        disabled=fields.integer("disabled", 0, MAX_DISABLED, 0),
        stunned=fields.flag("stunned"),
        from_schedule=fields.flag("from_schedule"),
        from_siphon=fields.flag("from_siphon"),
    )
    if enemy_type == EnemyType.CRYPTOG and "last" in fields.left:
        enemy.last = fields.cell("last")
    fields.end()
    return enemy


def _transmissions(fields: Fields, cells: list[Cell]) -> list[Transmission]:
    transmissions: list[Transmission] = []
    for data, path in fields.items("transmissions", 0, CELLS):
        transmission = transmission_from_dict(data, path)
        if cells[transmission.cell].is_block:
            raise IllegalStateError(f"{path}: a transmission cannot stand on a block")
        if any(other.cell == transmission.cell for other in transmissions):
            raise IllegalStateError(f"{path}: there is a transmission on this cell already")
        transmissions.append(transmission)
    return transmissions


def transmission_from_dict(data: Any, path: str) -> Transmission:
    """Reads a transmission."""
    fields = Fields(data, path)
    transmission = Transmission(
        type=_enemy_type(fields),
        cell=fields.coordinates(),
        turns=fields.integer("turns", 0, LIMIT),
        from_schedule=fields.flag("from_schedule"),
        from_siphon=fields.flag("from_siphon"),
    )
    fields.end()
    return transmission


def _enemy_type(fields: Fields) -> EnemyType:
    return EnemyType[
        fields.choice("type", (enemy_type.name.lower() for enemy_type in EnemyType)).upper()
    ]


def _owned(fields: Fields) -> list[int]:
    owned: list[int] = []
    for name, path in fields.items("owned", 0, len(PROGRAMS)):
        if name not in list(PROGRAM_INDEX):
            raise IllegalStateError(f"{path}: no program is called {format_value(name)}")
        if PROGRAM_INDEX[name] in owned:
            raise IllegalStateError(f"{path}: {name} is owned already")
        owned.append(PROGRAM_INDEX[name])
    return owned
