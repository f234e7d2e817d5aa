"""Section 12: the observation, as a compact record and as float features."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from operator import attrgetter, or_
from typing import Any

from hackmatrix.game.engine.movement import exit_distances
from hackmatrix.game.engine.spawning import line_of_fire
from hackmatrix.game.engine.state import Cell, Position, State
from hackmatrix.game.rules.board import CELLS, Content, col, row
from hackmatrix.game.rules.observation import (
    BYTE,
    CELL_CHANNELS,
    EXTRA_CELL_CHANNELS,
    EXTRA_CHANNELS,
    FIELD,
    MAX_DISTANCE,
    MAX_SEEN,
    MAX_TURNS,
    PLANE,
    PLAYER_CHANNELS,
    RECORD_SIZE,
    SCALAR,
    CellBytes,
    Channel,
    number_of,
)
from hackmatrix.game.rules.programs import PROGRAMS

_PLANES_END = len(PLANE) * CELLS
_CELLS_KEPT = 8192  # size of the caches of cells, as most cells of a board look alike


def observe(state: State) -> bytes:
    """The compact record, `RECORD_SIZE` bytes as `rules.observation` lays them out."""
    record = bytearray(RECORD_SIZE)
    fire = line_of_fire(state)
    last_seen = {enemy.last for enemy in state.enemies if not state.sees(enemy)}
    pieces = state.occupied()
    for cell, distance in enumerate(exit_distances(state)):
        shown = _without_pieces(
            cell in last_seen, cell in fire, distance, *_facts(state.cells[cell])
        )
        if cell in pieces:
            seen = CellBytes.holding({**_enemies(state, cell), **_transmission(state, cell)})
            shown = bytes(map(or_, shown, seen))  # other bits of the same bytes
        record[cell:_PLANES_END:CELLS] = shown
    for name, value in _scalars(state).items():
        start, size = BYTE[name], SCALAR[name].size
        record[start : start + size] = value.to_bytes(size, "little")
    return bytes(record)


def observe_saved(state: State) -> list[bytes]:
    """The observations at the saved positions, to which UNDO leads back; oldest first."""
    return [
        observe(replace(state, **{f.name: getattr(position, f.name) for f in fields(Position)}))
        for position in state.saved
    ]


_facts = attrgetter(*(field.name for field in fields(Cell)))


@lru_cache(_CELLS_KEPT)
def _without_pieces(last_seen: bool, in_fire: bool, distance: int | None, *facts: Any) -> bytes:
    """The six bytes of a cell, but for its enemies and transmission; `facts` make the `Cell`."""
    shown = {
        **_content(Cell(*facts)),
        "last_seen": last_seen,
        "in_fire": in_fire,
        "exit_distance": MAX_DISTANCE if distance is None else min(distance, MAX_DISTANCE),
    }
    return bytes(CellBytes.holding(shown))


def _enemies(state: State, cell: int) -> dict[str, int]:
    """Fields of a cell's enemies: the first in the list represents all, even if hidden."""
    here = state.enemies_on(cell)
    if not here:
        return {}
    seen = {"enemies_seen": min(sum(map(state.sees, here)), MAX_SEEN)}
    first = here[0]
    if not state.sees(first):
        return seen
    return seen | {
        "enemy_type": first.type + 1,
        "enemy_hp": first.hp,
        "stunned": first.stunned,
        "from_siphon": first.from_siphon,
    }


def _transmission(state: State, cell: int) -> dict[str, int]:
    """Fields of the transmission on a cell; its type only if SHOW is on."""
    transmission = state.transmission_on(cell)
    if transmission is None:
        return {}
    return {
        "transmission": True,
        "turns": min(transmission.turns, MAX_TURNS),
        "coming_type": transmission.type + 1 if state.show else 0,
    }


def _content(cell: Cell) -> dict[str, int]:
    """Fields of a cell's content and marks; an unsiphoned block hides resources."""
    shown: dict[str, int] = {
        "siphoned": cell.siphoned,
        "center": cell.center,
        "data_siphon": cell.content == Content.SIPHON,
        "exit": cell.content == Content.EXIT,
    }
    if not cell.is_block or cell.siphoned:
        shown |= {"credits": cell.credits, "energy": cell.energy}
    if cell.is_block:
        shown |= _block(cell)
    return shown


def _block(cell: Cell) -> dict[str, int]:
    """Fields of a block; an unsiphoned question block hides its content."""
    if cell.content == Content.QUESTION and not cell.siphoned:
        return {"block": Content.QUESTION}
    if cell.is_data:
        return {"block": Content.DATA, "value": cell.points, "spawn": cell.spawn}
    return {"block": Content.PROGRAM, "value": cell.program, "spawn": cell.spawn}


def _scalars(state: State) -> dict[str, int]:
    player = state.player
    return {
        "cell": player.cell,
        "hp": player.hp,
        "stage": state.stage,
        "flags": sum(FIELD[flag].put(getattr(state, flag)) for flag in ("show", "calm", "step")),
        "atk_uses": state.atk_uses,
        "saved": len(state.saved),
        "credits": player.credits,
        "energy": player.energy,
        "siphons": player.siphons,
        "attack": player.attack,
        "score": player.score,
        "turn": state.turn,
        "next_task": state.next_task,
        "interval": state.interval,
        "pending": state.pending,
        "owned": sum(1 << program for program in state.owned),
    }


def player_features(record: bytes) -> tuple[float, ...]:
    """The 10 features of the player."""
    return _floats(PLAYER_CHANNELS, lambda name: _scalar(record, name))


def owned_features(record: bytes) -> list[float]:
    """23 features: 1 for each program that is owned."""
    bits = number_of(record, "owned")
    return [float(bits >> program & 1) for program in range(len(PROGRAMS))]


@lru_cache(_CELLS_KEPT)
def cell_features(cell: CellBytes) -> tuple[float, ...]:
    """The 42 features of a cell in the classic layout."""
    return _floats(CELL_CHANNELS, lambda name: _cell_value(cell, name))


@lru_cache(_CELLS_KEPT)
def extra_cell_features(cell: CellBytes) -> tuple[float, ...]:
    """The 10 features that the full layout adds for a cell."""
    return _floats(EXTRA_CELL_CHANNELS, lambda name: _cell_value(cell, name))


def extra_features(record: bytes) -> list[float]:
    """The 41 features of the game that the full layout adds."""
    credits, energy = number_of(record, "credits"), number_of(record, "energy")
    return [
        *_floats(EXTRA_CHANNELS, lambda name: _scalar(record, name)),
        *(
            float(owns and credits >= program.credits and energy >= program.energy)
            for owns, program in zip(owned_features(record), PROGRAMS, strict=True)
        ),
    ]


def _scalar(record: bytes, name: str) -> int:
    """The value that a channel of the player or of the game encodes."""
    if name == "row":
        return row(number_of(record, "cell"))
    if name == "col":
        return col(number_of(record, "cell"))
    if name == "until_task":
        return number_of(record, "next_task") - number_of(record, "turn")
    return number_of(record, name)


def _cell_value(cell: CellBytes, name: str) -> int:
    """The value that a channel of a cell encodes."""
    block = cell.field("block")
    if name == "points":
        return cell.field("value") if block == Content.DATA else 0
    if name == "program":
        return cell.field("value") + 1 if block == Content.PROGRAM else 0
    if name == "siphoned_block":
        return cell.field("siphoned") if block else 0
    return cell.field(name)


def _floats(channels: tuple[Channel, ...], value_of: Callable[[str], int]) -> tuple[float, ...]:
    """The features of channels, given the value of each by name."""
    return tuple(x for channel in channels for x in _encode(channel, value_of(channel.name)))


def _encode(channel: Channel, value: int) -> list[float]:
    if channel.size > 1:
        return [float(value == i) for i in range(1, channel.size + 1)]
    x = (value - channel.zero) / channel.scale
    x = x if channel.high is None else min(x, channel.high)
    return [x if channel.low is None else max(x, channel.low)]
