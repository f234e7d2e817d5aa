"""Section 12: the observation, as a compact record and as float features."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.game.jaxgame import planes
from hackmatrix.game.jaxgame.bitboard import HALF, CellSet, EnemySet, of_cell
from hackmatrix.game.jaxgame.control_flow import compute_once
from hackmatrix.game.jaxgame.movement import exit_distances
from hackmatrix.game.jaxgame.planes import BitPlanes, Coordinates
from hackmatrix.game.jaxgame.spawning import line_of_fire
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.board import CELLS, SIZE, Content
from hackmatrix.game.rules.observation import (
    CELL_CHANNELS,
    EXTRA_CELL_CHANNELS,
    EXTRA_CHANNELS,
    FIELD,
    MAX_SEEN,
    PLAYER_CHANNELS,
    SCALARS,
    CellBytes,
    Channel,
    number_of,
)
from hackmatrix.game.rules.programs import PROGRAMS

_PROGRAMS = np.arange(len(PROGRAMS))
_CREDITS = np.array([program.credits for program in PROGRAMS])
_ENERGY = np.array([program.energy for program in PROGRAMS])


def record_words(state: State) -> list[jax.Array]:
    """The compact record (`rules.observation`) as arrays uint32[k] of words of four bytes each.

    The first byte is the lowest. `batch.py` converts them to bytes.
    """
    values = _scalars(state)
    rest = [byte for scalar in SCALARS for byte in _bytes_of(values[scalar.name], scalar.size)]
    rest += [jnp.int32(0)] * (-len(rest) % 4)
    quads = [rest[i : i + 4] for i in range(0, len(rest), 4)]
    return [*_plane_words(_planes(state)), *(_word_of(quad)[None] for quad in quads)]


def _word_of(quad: list[jax.Array]) -> jax.Array:
    a, b, c, d = (byte.astype(jnp.uint32) for byte in quad)
    return a | b << 8 | c << 16 | d << 24


def _plane_words(planes: list[BitPlanes[CellSet]]) -> list[jax.Array]:
    """uint32[9] of each plane: a byte for each cell, whose bits come from the plane's sets."""

    def four_cells(_: None, first: jax.Array) -> tuple[None, list[jax.Array]]:
        return None, [_spread(plane, first) for plane in planes]

    # A loop, so that the body is compiled once and not nine times.
    _, words = lax.scan(four_cells, None, jnp.arange(0, CELLS, 4, dtype=jnp.uint32))
    return words


def _spread(plane: BitPlanes[CellSet], first: jax.Array) -> jax.Array:
    """uint32: the bytes of four cells, starting at cell `first`."""
    word: Any = np.uint32(0)
    for bit, cells in enumerate(plane):
        # Shifts by 32 or more give 0; a negative difference is such a shift as uint32.
        four = cells.low >> first | cells.high << (HALF - first) | cells.high >> (first - HALF)
        # Four bits spread to the lowest bits of four bytes by one multiplication.
        spread = (four & 15) * np.uint32(0x00204081 << bit) & np.uint32(0x01010101 << bit)
        word = spread | word
    return word


def _scalars(state: State) -> dict[str, jax.Array]:
    player = state.player
    show, calm, step = (FIELD[flag].put(getattr(state, flag)) for flag in ("show", "calm", "step"))
    return {
        "cell": player.cell,
        "hp": player.hp,
        "stage": state.stage,
        "flags": show + calm + step,
        "atk_uses": state.atk_uses,
        "saved": state.saved.count,
        "credits": player.credits,
        "energy": player.energy,
        "siphons": player.siphons,
        "attack": player.attack,
        "score": player.score,
        "turn": state.turn,
        "next_task": state.next_task,
        "interval": state.interval,
        "pending": state.pending,
        "owned": state.owned,
    }


def _bytes_of(value: jax.Array, size: int) -> list[jax.Array]:
    """The bytes of a number below 256**size, the lowest first."""
    low = []
    for _ in range(size - 1):
        low.append(value & 0xFF)
        value = value >> 8
    return [*low, value]


def _planes(state: State) -> list[BitPlanes[CellSet]]:
    """The six planes: for each bit, the set of cells that have it set."""
    needed = state.stage > 0  # always true, which the compiler can't know
    people = compute_once(needed, lambda: _people(state))
    enemies, count = compute_once(needed, lambda: _enemy_planes(state, people))
    coming = compute_once(needed, lambda: _transmission_plane(state))
    far = compute_once(needed, lambda: _distances(state))
    value, spawn = _block_planes(state)
    return [
        enemies,
        coming,
        _laid_out({**_content(state), "enemies_seen": count}),
        _laid_out({**_resources(state), "exit_distance": far}),
        _laid_out({"value": value}),
        _laid_out({"spawn": spawn}),
    ]


def _laid_out(fields: dict[str, BitPlanes[CellSet]]) -> BitPlanes[CellSet]:
    """The plane made of these fields, from the lowest bit up without gaps."""
    plane: list[CellSet] = []
    for name, bits in fields.items():
        assert len(plane) == FIELD[name].first, name
        plane += bits
    return tuple(plane)


_Set = TypeVar("_Set", CellSet, EnemySet)


class _People(NamedTuple):
    """Sets of enemies by visibility."""

    shown: EnemySet  # the first on their cell, if visible
    hidden: EnemySet  # those not seen
    by_order: tuple[EnemySet, ...]  # the first, second and third visible enemy of each cell


def _people(state: State) -> _People:
    enemies, visible = state.enemies, state.visible_enemies()
    left, nth = visible, []
    for _ in range(MAX_SEEN):
        nth.append(enemies.cell.first_on_each_cell(left))
        left &= ~nth[-1]
    return _People(
        shown=enemies.cell.first_on_each_cell(enemies.alive) & visible,
        hidden=enemies.alive & ~visible,
        by_order=tuple(nth),
    )


def _enemy_planes(state: State, people: _People) -> tuple[BitPlanes[CellSet], BitPlanes[CellSet]]:
    """The plane `enemy`, and the number of visible enemies on each cell."""
    enemies = state.enemies
    facts = {
        "enemy_type": _plus_one(enemies.type),
        "enemy_hp": enemies.hp,
        "stunned": (enemies.stunned,),
        "from_siphon": (enemies.from_siphon,),
    }
    shown = {name: _among(people.shown, values) for name, values in facts.items()}
    cells = _on_cells(enemies.cell, {**shown, "by_order": people.by_order})
    one, two, three = cells.pop("by_order")
    last_seen = tuple(enemies.last.cells(people.hidden))
    return _laid_out({**cells, "last_seen": last_seen}), ((one & ~two) | three, two)


def _plus_one(types: BitPlanes[_Set]) -> BitPlanes[_Set]:
    """Enemy types plus 1, which take three planes."""
    low, high = types
    return ~low, low ^ high, low & high


def _among(members: _Set, values: BitPlanes[_Set]) -> BitPlanes[_Set]:
    """The values of the members, 0 for all others."""
    return tuple(slots & members for slots in values)


def _on_cells(
    coordinates: Coordinates[_Set], values: dict[str, BitPlanes[_Set]]
) -> dict[str, BitPlanes[CellSet]]:
    """Transfers values of the pieces in a list to the cells of the pieces."""
    cells = iter(coordinates.cells(*(slots for planes in values.values() for slots in planes)))
    return {name: tuple(next(cells) for _ in planes) for name, planes in values.items()}


def _transmission_plane(state: State) -> BitPlanes[CellSet]:
    """The plane `transmission`: transmissions, their types if SHOW is on, and the line of fire."""
    coming = state.transmissions
    low, high, *more = coming.turns
    most = planes.nonzero(tuple(more))  # MAX_TURNS or more, which needs the third bit alone

    facts = {
        "turns": (low & ~most, high & ~most, most),
        "coming_type": tuple(
            type_plane.only_if(state.show) for type_plane in _plus_one(coming.type)
        ),
    }
    alive = {name: _among(coming.alive, values) for name, values in facts.items()}
    return _laid_out(
        {
            "transmission": (state.transmissions_at,),
            **_on_cells(coming.cell, alive),
            "in_fire": (line_of_fire(state),),
        }
    )


def _content(state: State) -> dict[str, BitPlanes[CellSet]]:
    """Fields of the cells' contents and marks, as far as they are visible."""
    cells = state.cells
    data, program, question = _seen_blocks(state)
    exit = of_cell(state.exit)
    return {
        "block": (data | question, program | question),  # the bits of their `Content`: 1, 2, 3
        "siphoned": (cells.siphoned,),
        "center": (cells.center,),
        "data_siphon": (cells.siphons,),
        "exit": (exit,),
    }


def _seen_blocks(state: State) -> tuple[CellSet, CellSet, CellSet]:
    """The data blocks, program blocks and question blocks as the player sees them."""
    cells = state.cells
    question = cells.questions & ~cells.siphoned
    return cells.data & ~question, cells.blocks & ~cells.data & ~question, question


def _distances(state: State) -> BitPlanes[CellSet]:
    return exit_distances(state)


def _resources(state: State) -> dict[str, BitPlanes[CellSet]]:
    """Credits and energy, hidden under unsiphoned blocks."""
    cells = state.cells
    shown = ~cells.blocks | cells.siphoned
    return {"credits": _among(shown, cells.credits), "energy": _among(shown, cells.energy)}


def _block_planes(state: State) -> tuple[BitPlanes[CellSet], BitPlanes[CellSet]]:
    """Points or program, and spawn counts; hidden on question blocks."""
    data, program, _ = _seen_blocks(state)
    shown = data | program
    return _among(shown, state.cells.value), _among(shown, state.cells.spawn)


def features(record: jax.Array, layout: str) -> jax.Array:
    """float32[1545] or float32[1946]: the features of a record.

    Args:
        record: uint8[RECORD_SIZE].
        layout: "classic" or "full".
    """
    record = record.astype(jnp.int32)
    cells = CellBytes.of(record)
    parts = [player_features(record), owned_features(record), cell_features(cells)]
    if layout == "full":
        parts += [extra_cell_features(cells), extra_features(record)]
    return jnp.concatenate([part.reshape(-1).astype(jnp.float32) for part in parts])


def player_features(record: jax.Array) -> jax.Array:
    """float32[10]: the features of the player."""
    return _floats(PLAYER_CHANNELS, lambda name: _scalar(record, name))


def owned_features(record: jax.Array) -> jax.Array:
    """int32[23]: 1 for each program that is owned."""
    return (number_of(record, "owned") >> _PROGRAMS) & 1


def cell_features(cells: CellBytes) -> jax.Array:
    """float32[36, 42]: the features of the cells in the classic layout."""
    return _floats(CELL_CHANNELS, lambda name: _cell_value(cells, name))


def extra_cell_features(cells: CellBytes) -> jax.Array:
    """float32[36, 10]: the features that the full layout adds for cells."""
    return _floats(EXTRA_CELL_CHANNELS, lambda name: _cell_value(cells, name))


def extra_features(record: jax.Array) -> jax.Array:
    """float32[41]: the features of the game that the full layout adds."""
    credits, energy = number_of(record, "credits"), number_of(record, "energy")
    can_pay = (credits >= _CREDITS) & (energy >= _ENERGY)
    values = _floats(EXTRA_CHANNELS, lambda name: _scalar(record, name))
    affordable = (owned_features(record) * can_pay).astype(jnp.float32)
    return jnp.concatenate([values, affordable])


def _scalar(record: jax.Array, name: str) -> jax.Array:
    """int32: the value that a channel of the player or of the game encodes."""
    if name == "row":
        return number_of(record, "cell") // SIZE
    if name == "col":
        return number_of(record, "cell") % SIZE
    if name == "until_task":
        return number_of(record, "next_task") - number_of(record, "turn")
    return number_of(record, name)


def _cell_value(cells: CellBytes, name: str) -> jax.Array:
    """int32[36]: the values that a channel of the cells encodes."""
    if name == "points":
        return jnp.where(cells.field("block") == Content.DATA, cells.value, 0)
    if name == "program":
        return jnp.where(cells.field("block") == Content.PROGRAM, cells.value + 1, 0)
    if name == "siphoned_block":
        return jnp.where(cells.field("block") > 0, cells.field("siphoned"), 0)
    return cells.field(name)


def _floats(channels: tuple[Channel, ...], value_of: Callable[[str], jax.Array]) -> jax.Array:
    """float32[..., n]: the features of channels, given the values [...] of each by name."""
    columns = []
    for channel in channels:
        values = value_of(channel.name)
        columns.append(_encode(channel, values).reshape(*values.shape, -1).astype(jnp.float32))
    return jnp.concatenate(columns, axis=-1)


def _encode(channel: Channel, values: jax.Array) -> jax.Array:
    """The features of one channel from values [...]: [...], or one-hot [..., size]."""
    if channel.size > 1:
        return values[..., None] == np.arange(1, channel.size + 1)
    return scale(channel, values)


def scale(channel: Channel, values: jax.Array) -> jax.Array:
    """The feature of a channel of size 1, from integers of any shape."""
    # Operations that would change nothing are skipped.
    shown = values - channel.zero if channel.zero else values
    shown = shown / channel.scale if channel.scale > 1 else shown
    shown = shown if channel.high is None else jnp.minimum(shown, channel.high)
    return shown if channel.low is None else jnp.maximum(shown, channel.low)
