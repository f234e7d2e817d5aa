"""A position as a person writes it: a drawing and one line per fact (`docs/positions.md`).

    s. .. .. .. .. X.
    .. .. .. .. .. ..
    .. .. D. .. .. ..
    .. .. .. .g .. ..
    .. .. .. .. .. ..
    .@ .. .. .. .+ ..
    stage 2 turn 3
    player hp 2 credits 4
    owned PUSH WAIT
    cell 3,2 points 4 spawn 4
    enemy glitch 2,3 hp 1 stunned
    transmission virus 0,4 turns 2

Rows 5..0, two characters a cell: what it holds (`.` nothing, `D` data, `P` program, `?` question
block, `s` data siphon, `X` exit) and who is there (`@` player, `v d g c` enemy, `+` transmission).
Facts left out are those of a new game. Enemies and transmissions without a line are whole and in
reading order; a `P` without a line carries PUSH, a `?` hides data.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from hackmatrix.game.engine.fields import IllegalStateError
from hackmatrix.game.engine.saving import state_from_dict, state_to_dict
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.board import CELLS, SIZE, col, row
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.stages import FIRST_INTERVAL
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

_CONTENT = {
    ".": "empty",
    "D": "data",
    "P": "program",
    "?": "question",
    "s": "siphon",
    "X": "exit",
}
_LETTER = {content: letter for letter, content in _CONTENT.items()}
_ENEMY = {enemy_type.name[0].lower(): enemy_type.name.lower() for enemy_type in EnemyType}

_PLAYER = {"hp": PLAYER_HP, "credits": 0, "energy": 0, "siphons": 0, "attack": 1, "score": 0}
_GAME = {"stream": 0, "episode": 0, "clock": 0}
_STAGE = {"stage": 1, "interval": FIRST_INTERVAL, "next_task": FIRST_INTERVAL, "pending": 0}
_POSITION = {"turn": 0, "atk_uses": 0}
_FLAGS = {"siphoned", "center", "holds_data", "stunned", "from_schedule", "from_siphon"}


# --- to text -------------------------------------------------------------------------------------


def state_to_text(state: State) -> str:
    """The complete state; `state_from_text` reads it back exactly."""
    data = state_to_dict(state)
    lines = [*_overview(data), *_details(data)]
    for saved in data["saved"]:
        position = [
            *drawing(saved),
            _facts("", saved, _POSITION),
            *_player_lines(saved, ("show", "calm")),
            *_details(saved),
        ]
        lines += ["saved", *(f"  {line}" for line in position)]
    return "\n".join(lines) + "\n"


def summary(state: State) -> str:
    """A short view of a state: the drawing, and the numbers of the game and of the player."""
    return "\n".join(_overview(state_to_dict(state)))


def _overview(data: dict[str, Any]) -> list[str]:
    return [
        *drawing(data),
        _facts("game", data, _GAME),
        _facts("", data, _STAGE | _POSITION),
        *_player_lines(data, ("show", "calm", "step")),
        *([f"over {data['over']}"] if data["over"] else []),
    ]


def drawing(data: dict[str, Any]) -> list[str]:
    """The six lines of the board, row 5 first."""
    who = dict.fromkeys(range(CELLS), ".")
    who.update({_cell(t): "+" for t in data["transmissions"]})
    who.update({_cell(e): e["type"][0] for e in reversed(data["enemies"])})
    who[_cell(data["player"])] = "@"
    drawn = [_LETTER[cell["content"]] + who[i] for i, cell in enumerate(data["cells"])]
    return [" ".join(drawn[start : start + SIZE]) for start in range(CELLS - SIZE, -1, -SIZE)]


def _cell(coordinates: dict[str, int]) -> int:
    return coordinates["row"] * SIZE + coordinates["col"]


def _facts(head: str, data: dict[str, Any], names: dict[str, int]) -> str:
    return " ".join([*head.split(), *chain.from_iterable((n, str(data[n])) for n in names)])


def _player_lines(data: dict[str, Any], flags: tuple[str, ...]) -> list[str]:
    """Lines for the active flags, the player's numbers and the owned programs."""
    return [
        " ".join(["flags", *(flag for flag in flags if data[flag])]),
        _facts("player", data["player"], _PLAYER),
        " ".join(["owned", *data["owned"]]),
    ]


def _details(data: dict[str, Any]) -> Iterator[str]:
    """A line for each cell that the drawing does not fully describe, and for each piece."""
    for index, cell in enumerate(data["cells"]):
        if len(cell) > 1:
            yield f"cell {row(index)},{col(index)}" + _format_facts(cell, ("content",))
    for piece_name, pieces in (("enemy", "enemies"), ("transmission", "transmissions")):
        for piece in data[pieces]:
            text = _format_facts(piece, ("type", "row", "col"))
            yield f"{piece_name} {piece['type']} {piece['row']},{piece['col']}{text}"


def _format_facts(facts: dict[str, Any], left_out: tuple[str, ...]) -> str:
    text = ""
    for name, value in facts.items():
        if name in left_out:
            continue
        text += f" {name}"
        if name == "last":
            text += f" {value[0]},{value[1]}"
        elif name not in _FLAGS:
            text += f" {value}"
    return text


# --- from text -----------------------------------------------------------------------------------


def state_from_text(text: str) -> State:
    """Reads a position in text form.

    Raises:
        IllegalStateError: a line cannot be read, the drawing and the lines disagree, or the state
            is not legal; the message names the line or the field.
    """
    blocks: list[list[tuple[int, str]]] = [[]]
    for line_number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line == "saved":
            blocks.append([])
        elif line:
            blocks[-1].append((line_number, line))
    data = _GAME | _STAGE | {"step": False, "over": None} | _read_position(blocks[0], whole=True)
    data["saved"] = [_read_position(block, whole=False) for block in blocks[1:]]
    return state_from_dict(data)


def _read_position(lines: list[tuple[int, str]], *, whole: bool) -> dict[str, Any]:
    if len(lines) < SIZE:
        raise IllegalStateError(f"expected {SIZE} lines of board, got {len(lines)}")
    data = _read_drawing(lines[:SIZE], whole=whole)
    drawn = data["enemies"], data["transmissions"]
    data["enemies"], data["transmissions"] = [], []
    for line_number, line in lines[SIZE:]:
        try:
            read_fact(data, line.split(), whole=whole)
        except (ValueError, KeyError, IndexError, StopIteration):
            raise IllegalStateError(f"line {line_number}: cannot read {line!r}") from None
    data["enemies"] = data["enemies"] or drawn[0]
    data["transmissions"] = data["transmissions"] or drawn[1]
    for (line_number, line), expected in zip(lines, drawing(data), strict=False):
        if line.split() != expected.split():
            raise IllegalStateError(
                f"line {line_number}: drawn {line!r}, but the facts say {expected!r}"
            )
    return data


def _read_drawing(lines: list[tuple[int, str]], *, whole: bool) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [{} for _ in range(CELLS)]
    data: dict[str, Any] = {
        **_POSITION,
        "show": False,
        "calm": False,
        "owned": [],
        "cells": cells,
        "enemies": [],
        "transmissions": [],
    }
    for r, (line_number, line) in zip(range(SIZE - 1, -1, -1), lines, strict=True):
        drawn = line.split()
        if len(drawn) != SIZE or any(len(cell) != 2 for cell in drawn):
            raise IllegalStateError(f"line {line_number}: expected {SIZE} cells of two characters")
        for c, cell in enumerate(drawn):
            content, who = cell[0], cell[1]
            coordinates = {"row": r, "col": c}
            if content not in _CONTENT or who not in {".", "@", "+", *_ENEMY}:
                raise IllegalStateError(f"line {line_number}: no cell is drawn as {cell!r}")
            cells[_cell(coordinates)] = {"content": _CONTENT[content]}
            if content == "P":
                cells[_cell(coordinates)]["program"] = "PUSH"
            if content == "?":
                cells[_cell(coordinates)]["holds_data"] = True
            if content == "X" and whole:
                data["exit"] = [r, c]
            if who == "@":
                data["player"] = _PLAYER | coordinates
            elif who == "+":
                data["transmissions"].append({"type": "virus", **coordinates, "turns": 1})
            elif who in _ENEMY:
                data["enemies"].append(_enemy(_ENEMY[who], coordinates))
    if "player" not in data:
        raise IllegalStateError(f"line {lines[-1][0]}: the drawing has no player (@)")
    return data


def _enemy(enemy_type: str, coordinates: dict[str, int]) -> dict[str, Any]:
    return {"type": enemy_type, **coordinates, "hp": MAX_HP[EnemyType[enemy_type.upper()]]}


def read_fact(data: dict[str, Any], tokens: list[str], *, whole: bool) -> None:
    """Parses one line and stores its facts in a state's data.

    Args:
        data: a state or a saved position as JSON data; enemies and transmissions are appended.
        tokens: the words of the line.
        whole: whether the data is a whole state.

    Raises:
        ValueError, KeyError, IndexError, StopIteration: the line cannot be read.
    """
    head, *rest = tokens
    match head:
        case "player":
            data["player"] |= _read_tokens(rest, _PLAYER)
        case "owned":
            data["owned"] = rest
        case "flags":
            allowed = ("show", "calm", "step") if whole else ("show", "calm")
            data.update({allowed[allowed.index(flag)]: True for flag in rest})
        case "cell":
            cell = data["cells"][_cell(_coordinates(rest[0]))]
            cell |= _read_tokens(rest[1:], ("credits", "energy", "points", "program", "spawn"))
            if "program" in cell:
                cell.pop("holds_data", None)
        case "enemy":
            enemy = _enemy(rest[0], _coordinates(rest[1]))
            data["enemies"].append(enemy | _read_tokens(rest[2:], ("hp", "disabled", "last")))
        case "transmission":
            transmission = {"type": rest[0], **_coordinates(rest[1]), "turns": 1}
            data["transmissions"].append(transmission | _read_tokens(rest[2:], ("turns",)))
        case "game" if whole:
            data.update(_read_tokens(rest, _GAME))
        case "over" if whole:
            data["over"] = " ".join(rest)
        case _:
            data.update(_read_tokens(tokens, _STAGE | _POSITION if whole else _POSITION))


def _coordinates(token: str) -> dict[str, int]:
    r, c = (int(part) for part in token.split(","))
    if r not in range(SIZE) or c not in range(SIZE):
        raise ValueError(token)
    return {"row": r, "col": c}


def _read_tokens(tokens: list[str], names: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    rest = iter(tokens)
    for name in rest:
        if name in _FLAGS:
            facts[name] = True
        elif name not in names:
            raise ValueError(name)
        elif name == "last":
            facts[name] = [*_coordinates(next(rest)).values()]
        else:
            value = next(rest)
            facts[name] = value if name == "program" else int(value)
    return facts
