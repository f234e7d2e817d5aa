"""A whole state as JSON data, and back: every field checked, every illegal one named."""

from collections.abc import Iterable
from typing import Any

from hackmatrix.engine.dice import Dice
from hackmatrix.engine.state import Cell, Ending, Enemy, Player, Position, State, Transmission
from hackmatrix.errors import UserError
from hackmatrix.rules.board import (
    CELLS,
    LIMIT,
    MAX_POINTS,
    MAX_RESOURCE,
    MAX_SPAWN,
    SIZE,
    Content,
    col,
    row,
)
from hackmatrix.rules.enemies import MAX_ENEMIES, MAX_HP, EnemyType
from hackmatrix.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, NUMBER, PROGRAMS
from hackmatrix.rules.stages import LAST_STAGE
from hackmatrix.rules.stages import MAX_HP as PLAYER_HP

_WORD = 0xFFFFFFFF
MAX_DISABLED = 99


class IllegalStateError(UserError, ValueError):
    """Data that is no legal state; the message names the field."""


# --- to data -------------------------------------------------------------------------------------


def state_to_dict(state: State) -> dict[str, Any]:
    """The complete state; zero, false and empty facts of cells and pieces are left out."""
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
    """What UNDO restores."""
    player = position.player
    return {
        "turn": position.turn,
        "show": position.show,
        "calm": position.calm,
        "atk_uses": position.atk_uses,
        "player": {
            **_place(player.cell),
            "hp": player.hp,
            "credits": player.credits,
            "energy": player.energy,
            "siphons": player.siphons,
            "attack": player.attack,
            "score": player.score,
        },
        "owned": [PROGRAMS[number].name for number in position.owned],
        "cells": [cell_to_dict(cell) for cell in position.cells],
        "enemies": [enemy_to_dict(enemy) for enemy in position.enemies],
        "transmissions": [transmission_to_dict(t) for t in position.transmissions],
    }


def cell_to_dict(cell: Cell) -> dict[str, Any]:
    """The facts of one cell; `content` is always there, `program` on whatever holds one."""
    facts: dict[str, Any] = {"content": cell.content.name.lower()}
    if cell.is_program:
        facts["program"] = PROGRAMS[cell.program].name
    for name in ("credits", "energy", "siphoned", "center", "points", "spawn", "holds_data"):
        if getattr(cell, name):
            facts[name] = getattr(cell, name)
    return facts


def enemy_to_dict(enemy: Enemy) -> dict[str, Any]:
    """The facts of one enemy; `last` is always there for cryptogs and only for them."""
    facts = {"type": enemy.type.name.lower(), **_place(enemy.cell), "hp": enemy.hp}
    for name in ("disabled", "stunned", "from_schedule", "from_siphon"):
        if getattr(enemy, name):
            facts[name] = getattr(enemy, name)
    if enemy.type == EnemyType.CRYPTOG:
        facts["last"] = [row(enemy.last), col(enemy.last)]
    return facts


def transmission_to_dict(transmission: Transmission) -> dict[str, Any]:
    """The facts of one transmission."""
    facts = {
        "type": transmission.type.name.lower(),
        **_place(transmission.cell),
        "turns": transmission.turns,
    }
    for name in ("from_schedule", "from_siphon"):
        if getattr(transmission, name):
            facts[name] = True
    return facts


def _place(cell: int) -> dict[str, Any]:
    return {"row": row(cell), "col": col(cell)}


# --- from data -----------------------------------------------------------------------------------


class _Fields:
    """The fields of one JSON object, taken one by one; what is left over at the end is unknown."""

    def __init__(self, data: Any, path: str) -> None:
        if not isinstance(data, dict):
            raise IllegalStateError(f"{path or 'state'}: expected an object, got {_shown(data)}")
        self.left = dict(data)
        self.prefix = f"{path}." if path else ""

    def take(self, name: str, default: Any = ...) -> Any:
        if name not in self.left and default is ...:
            raise IllegalStateError(f"{self.prefix}{name}: missing")
        return self.left.pop(name, default)

    def number(self, name: str, low: int, high: int, default: Any = ...) -> int:
        value = self.take(name, default)
        if type(value) is not int or not low <= value <= high:
            self.refuse(name, value, f"expected {low}..{high}")
        return int(value)

    def flag(self, name: str) -> bool:
        value = self.take(name, False)
        if type(value) is not bool:
            self.refuse(name, value, "expected true or false")
        return bool(value)

    def choice(self, name: str, options: Iterable[str]) -> str:
        value, names = self.take(name), list(options)
        if value not in names:
            self.refuse(name, value, f"expected one of {', '.join(names)}")
        return str(value)

    def cell(self, name: str) -> int:
        return _pair(self.take(name), f"{self.prefix}{name}")

    def place(self) -> int:
        return self.number("row", 0, SIZE - 1) * SIZE + self.number("col", 0, SIZE - 1)

    def items(self, name: str, low: int, high: int, default: Any = ...) -> list[tuple[Any, str]]:
        value = self.take(name, default)
        if not isinstance(value, list) or not low <= len(value) <= high:
            bounds = str(low) if low == high else f"{low}..{high}"
            self.refuse(name, value, f"expected a list of {bounds}")
        return [(item, f"{self.prefix}{name}[{i}]") for i, item in enumerate(value)]

    def refuse(self, name: str, value: Any, why: str) -> None:
        raise IllegalStateError(f"{self.prefix}{name}: {why}, got {_shown(value)}")

    def end(self) -> None:
        for name in self.left:
            raise IllegalStateError(f"{self.prefix}{name}: unknown field")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _pair(value: Any, path: str) -> int:
    match value:
        case [int(r), int(c)] if 0 <= r < SIZE and 0 <= c < SIZE:
            return r * SIZE + c
    raise IllegalStateError(f"{path}: expected [row, col] with 0..{SIZE - 1}, got {_shown(value)}")


def state_from_dict(data: Any) -> State:
    """Read a complete state.

    `stream`, `episode` and `clock` may be left out (0), and so may every flag, `atk_uses`, `saved`
    and `over`.

    Raises:
        IllegalStateError: it is no legal state (section 2); the message names the field.
    """
    fields = _Fields(data, "")
    dice = Dice(*(fields.number(name, 0, _WORD, 0) for name in ("stream", "episode", "clock")))
    over = fields.take("over", None)
    if over is not None and over not in list(Ending):
        fields.refuse("over", over, f"expected null or one of {', '.join(Ending)}")
    exit = fields.cell("exit")
    state = State(
        **position_fields(fields, exit, dead=over == Ending.DIED),
        dice=dice,
        exit=exit,
        stage=fields.number("stage", 1, LAST_STAGE),
        interval=fields.number("interval", 0, LIMIT),
        next_task=fields.number("next_task", 0, LIMIT),
        pending=fields.number("pending", 0, LIMIT),
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
    """Read a saved UNDO state; `dead`: the player may have 0 hp, as when the game ended so."""
    fields = _Fields(data, path)
    position = Position(**position_fields(fields, exit, dead=dead))
    fields.end()
    return position


def position_fields(fields: _Fields, exit: int, *, dead: bool) -> dict[str, Any]:
    """Read what UNDO restores.

    Args:
        fields: where to take it from.
        exit: the exit's cell, which must be the one that holds the exit.
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
        "turn": fields.number("turn", 0, LIMIT),
        "show": fields.flag("show"),
        "calm": fields.flag("calm"),
        "atk_uses": fields.number("atk_uses", 0, MAX_ATK_USES, 0),
    }


def player_from_dict(data: Any, path: str, *, dead: bool) -> Player:
    """Read the player."""
    fields = _Fields(data, path)
    player = Player(
        fields.place(),
        hp=fields.number("hp", 0 if dead else 1, PLAYER_HP),
        credits=fields.number("credits", 0, LIMIT),
        energy=fields.number("energy", 0, LIMIT),
        siphons=fields.number("siphons", 0, LIMIT),
        attack=fields.number("attack", 1, LIMIT),
        score=fields.number("score", 0, LIMIT),
    )
    fields.end()
    return player


def cell_from_dict(data: Any, path: str) -> Cell:
    """Read one cell; the facts of blocks are refused elsewhere."""
    fields = _Fields(data, path)
    cell = Cell(
        Content[fields.choice("content", (c.name.lower() for c in Content)).upper()],
        credits=fields.number("credits", 0, MAX_RESOURCE, 0),
        energy=fields.number("energy", 0, MAX_RESOURCE, 0),
        siphoned=fields.flag("siphoned"),
        center=fields.flag("center"),
    )
    if cell.credits and cell.energy:
        fields.refuse("energy", cell.energy, "a cell has credits or energy, not both")
    if cell.content == Content.QUESTION:
        cell.holds_data = fields.flag("holds_data")
    if cell.is_block:
        cell.spawn = fields.number("spawn", 0, MAX_SPAWN, 0)
    if cell.is_data:
        cell.points = fields.number("points", 0, MAX_POINTS, 0)
    if cell.is_program:
        cell.program = NUMBER[fields.choice("program", NUMBER)]
    fields.end()
    return cell


def enemy_from_dict(data: Any, path: str) -> Enemy:
    """Read one enemy."""
    fields = _Fields(data, path)
    kind = _enemy_type(fields)
    cell = fields.place()
    enemy = Enemy(
        kind,
        cell,
        hp=fields.number("hp", 1, MAX_HP[kind]),
        disabled=fields.number("disabled", 0, MAX_DISABLED, 0),
        stunned=fields.flag("stunned"),
        from_schedule=fields.flag("from_schedule"),
        from_siphon=fields.flag("from_siphon"),
    )
    if kind == EnemyType.CRYPTOG and "last" in fields.left:
        enemy.last = fields.cell("last")
    fields.end()
    return enemy


def _transmissions(fields: _Fields, cells: list[Cell]) -> list[Transmission]:
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
    """Read one transmission."""
    fields = _Fields(data, path)
    transmission = Transmission(
        type=_enemy_type(fields),
        cell=fields.place(),
        turns=fields.number("turns", 0, LIMIT),
        from_schedule=fields.flag("from_schedule"),
        from_siphon=fields.flag("from_siphon"),
    )
    fields.end()
    return transmission


def _enemy_type(fields: _Fields) -> EnemyType:
    return EnemyType[fields.choice("type", (kind.name.lower() for kind in EnemyType)).upper()]


def _owned(fields: _Fields) -> list[int]:
    owned: list[int] = []
    for name, path in fields.items("owned", 0, len(PROGRAMS)):
        if name not in NUMBER:
            raise IllegalStateError(f"{path}: no program is called {_shown(name)}")
        if NUMBER[name] in owned:
            raise IllegalStateError(f"{path}: {name} is owned already")
        owned.append(NUMBER[name])
    return owned
