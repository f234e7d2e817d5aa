"""Section 12: what the player can see, as a compact record and as float features."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.jaxgame import planes
from hackmatrix.jaxgame.bitboard import HALF, CellSet, EnemySet, of_cell
from hackmatrix.jaxgame.control_flow import compute_once
from hackmatrix.jaxgame.movement import exit_distances
from hackmatrix.jaxgame.planes import Numbers
from hackmatrix.jaxgame.spawning import line_of_fire
from hackmatrix.jaxgame.state import State
from hackmatrix.rules.board import CELLS, MAX_POINTS, MAX_RESOURCE, SIZE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import (
    BYTE,
    CELL,
    ENEMY,
    MAX_DISTANCE,
    MAX_SEEN,
    MAX_TURNS,
    OWNED,
    RESOURCE,
    SPAWN,
    TRANSMISSION,
    VALUE,
    WORD,
    WORDS,
)
from hackmatrix.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAMS
from hackmatrix.rules.stages import FIRST_INTERVAL, LAST_STAGE, MAX_HP

_NUMBERS = np.arange(len(PROGRAMS))
_CREDITS = np.array([program.credits for program in PROGRAMS])
_ENERGY = np.array([program.energy for program in PROGRAMS])


def record_words(state: State) -> list[jax.Array]:
    """The compact record, as `rules.observation` lays it out: uint32[k] of four bytes each.

    The first byte is the lowest. `batch.py` makes bytes of them.
    """
    numbers = [*_bytes(state), *_words(state), *_owned_bytes(state)]
    numbers += [jnp.int32(0)] * (-len(numbers) % 4)
    quads = [numbers[i : i + 4] for i in range(0, len(numbers), 4)]
    return [*_plane_words(_planes(state)), *(_word_of(quad)[None] for quad in quads)]


def _word_of(quad: list[jax.Array]) -> jax.Array:
    a, b, c, d = (number.astype(jnp.uint32) for number in quad)
    return a | b << 8 | c << 16 | d << 24


def _plane_words(planes: list[Numbers[CellSet]]) -> list[jax.Array]:
    """uint32[9] of each plane: a byte for each cell, its bits from the sets of the plane."""

    def four_cells(_: None, first: jax.Array) -> tuple[None, list[jax.Array]]:
        return None, [_spread(plane, first) for plane in planes]

    # A loop, so that it is compiled once and not for each of the nine.
    _, words = lax.scan(four_cells, None, jnp.arange(0, CELLS, 4, dtype=jnp.uint32))
    return words


def _spread(plane: Numbers[CellSet], first: jax.Array) -> jax.Array:
    """uint32: the bytes of four cells."""
    word = jnp.uint32(0)
    for bit, cells in enumerate(plane):
        # Shifts by 32 places or more, which a difference below 0 is too, make 0.
        four = cells.low >> first | cells.high << (HALF - first) | cells.high >> (first - HALF)
        # Four bits spread to the lowest bits of four bytes by one multiplication.
        word |= ((four & 15) * np.uint32(0x00204081) & np.uint32(0x01010101)) << bit
    return word


def _bytes(state: State) -> list[jax.Array]:
    flags = state.show + state.calm * 2 + state.step * 4
    player = state.player
    return [player.cell, player.hp, state.stage, flags, state.atk_uses, state.saved.count]


def _words(state: State) -> list[jax.Array]:
    player = state.player
    numbers = [getattr(player if hasattr(player, name) else state, name) for name in WORDS]
    return [byte for number in numbers for byte in (number & 0xFF, number >> 8)]


def _owned_bytes(state: State) -> list[jax.Array]:
    return [(state.owned >> shift) & 0xFF for shift in (0, 8, 16)]


def _planes(state: State) -> list[Numbers[CellSet]]:
    """The six planes: for each bit of their bytes, the cells that have it."""
    needed = state.stage > 0  # which the compiler can't know
    people = compute_once(needed, lambda: _people(state))
    enemies, count = compute_once(needed, lambda: _enemy_planes(state, people))
    coming = compute_once(needed, lambda: _transmission_plane(state))
    far = compute_once(needed, lambda: _distances(state))
    value, spawn = _block_planes(state)
    return [
        enemies,
        coming,
        (*_cell_plane(state), *count),
        _resource_plane(state, far),
        value,
        spawn,
    ]


_Set = TypeVar("_Set", CellSet, EnemySet)


class _People(NamedTuple):
    """Sets of enemies.

    Those that stand for all on their cell and are seen, those hidden, and of those seen the first,
    second and third on each cell.
    """

    shown: EnemySet
    hidden: EnemySet
    seen: tuple[EnemySet, ...]


def _people(state: State) -> _People:
    enemies, visible = state.enemies, state.seen()
    left, nth = visible, []
    for _ in range(MAX_SEEN):
        nth.append(enemies.cell.first_on_each_cell(left))
        left &= ~nth[-1]
    return _People(
        shown=enemies.cell.first_on_each_cell(enemies.alive) & visible,
        hidden=enemies.alive & ~visible,
        seen=tuple(nth),
    )


def _enemy_planes(state: State, people: _People) -> tuple[Numbers[CellSet], Numbers[CellSet]]:
    """The plane ENEMY, and how many enemies are seen on each cell."""
    enemies = state.enemies
    facts = (*_plus_one(enemies.type), *enemies.hp, enemies.stunned, enemies.from_siphon)
    shown = [members & people.shown for members in facts]
    *plane, one, two, three = enemies.cell.cells(*shown, *people.seen)
    (last,) = enemies.last.cells(people.hidden)
    return (*plane, last), ((one & ~two) | three, two)


def _plus_one(kinds: Numbers[_Set]) -> Numbers[_Set]:
    """Enemy types counted from 1, in three planes."""
    low, high = kinds
    return ~low, low ^ high, low & high


def _transmission_plane(state: State) -> Numbers[CellSet]:
    """Whether one comes, when, and after SHOW what; and the line of fire."""
    coming = state.transmissions
    low, high, *more = coming.turns
    most = planes.nonzero(tuple(more))  # MAX_TURNS or more, which needs the third bit alone

    shown = (kind.only_if(state.show) for kind in _plus_one(coming.type))
    facts = (low & ~most, high & ~most, most, *shown)
    cells = coming.cell.cells(*(members & coming.alive for members in facts))
    return (state.transmissions_at, *cells, line_of_fire(state))


def _cell_plane(state: State) -> Numbers[CellSet]:
    """What the cells hold, and their marks."""
    cells = state.cells
    data, program, question = _seen_blocks(state)
    exit = of_cell(state.exit)
    return data | question, program | question, cells.siphoned, cells.center, cells.siphons, exit


def _seen_blocks(state: State) -> tuple[CellSet, CellSet, CellSet]:
    """The data blocks, program blocks and question blocks as they look."""
    cells = state.cells
    question = cells.questions & ~cells.siphoned
    return cells.data & ~question, cells.blocks & ~cells.data & ~question, question


def _distances(state: State) -> Numbers[CellSet]:
    return exit_distances(state)


def _resource_plane(state: State, distances: Numbers[CellSet]) -> Numbers[CellSet]:
    """Credits and energy, hidden under unsiphoned blocks, and exit distances."""
    cells = state.cells
    shown = ~cells.blocks | cells.siphoned
    return (*(plane & shown for plane in (*cells.credits, *cells.energy)), *distances)


def _block_planes(state: State) -> tuple[Numbers[CellSet], Numbers[CellSet]]:
    """Points or program, and spawn counts; hidden on question blocks."""
    data, program, _ = _seen_blocks(state)
    shown = data | program
    cells = state.cells
    return tuple(p & shown for p in cells.value), tuple(p & shown for p in cells.spawn)


def features(record: jax.Array, layout: str) -> jax.Array:
    """float32[1545] or float32[1946]: the features of a record.

    Args:
        record: uint8[RECORD_SIZE].
        layout: "classic" or "full".
    """
    record = record.astype(jnp.int32)
    parts = [player_features(record), owned_features(record), cell_features(record)]
    if layout == "full":
        parts += [extra_cell_features(record), extra_features(record)]
    return jnp.concatenate([part.reshape(-1).astype(jnp.float32) for part in parts])


def _plane(record: jax.Array, start: int) -> jax.Array:
    return record[start : start + CELLS]


def _word(record: jax.Array, name: str) -> jax.Array:
    return record[WORD[name]] | record[WORD[name] + 1] << 8


def owned_features(record: jax.Array) -> jax.Array:
    """int32[23]: 1 for each program that is owned."""
    bits = record[OWNED] | record[OWNED + 1] << 8 | record[OWNED + 2] << 16
    return (bits >> _NUMBERS) & 1


def _one_hot(values: jax.Array, size: int) -> jax.Array:
    return values[..., None] == np.arange(size)


def player_features(record: jax.Array) -> jax.Array:
    """float32[10]: the numbers of the player."""
    cell, flags = record[BYTE["cell"]], record[BYTE["flags"]]
    return jnp.stack(
        [
            cell // SIZE / (SIZE - 1),
            cell % SIZE / (SIZE - 1),
            record[BYTE["hp"]] / MAX_HP,
            jnp.minimum(_word(record, "credits") / 50, 1),
            jnp.minimum(_word(record, "energy") / 50, 1),
            (record[BYTE["stage"]] - 1) / (LAST_STAGE - 1),
            _word(record, "siphons") / 10,
            (_word(record, "attack") - 1) / 2,
            (flags & 1).astype(jnp.float32),
            (flags >> 1 & 1).astype(jnp.float32),
        ]
    )


def cell_features(record: jax.Array) -> jax.Array:
    """float32[36, 42]: the channels of the classic layout."""
    enemy, coming = _plane(record, ENEMY), _plane(record, TRANSMISSION)
    holds, resource = _plane(record, CELL), _plane(record, RESOURCE)
    value, spawn = _plane(record, VALUE), _plane(record, SPAWN)
    block = holds & 3
    columns = [
        _one_hot((enemy & 7) - 1, len(EnemyType)),
        (enemy >> 3 & 3) / 3,
        enemy >> 5 & 1,
        enemy >> 6 & 1,
        _one_hot(block - 1, 3),
        jnp.where(block == Content.DATA, value / MAX_POINTS, 0),
        (block > 0) & (holds >> 2 & 1 == 1),
        _one_hot(jnp.where(block == Content.PROGRAM, value, -1), len(PROGRAMS)),
        jnp.minimum(spawn / 9, 1),
        (coming >> 1 & 7) / MAX_TURNS,
        (resource & 3) / MAX_RESOURCE,
        (resource >> 2 & 3) / MAX_RESOURCE,
        holds >> 4 & 1,
        holds >> 5 & 1,
        holds >> 3 & 1,
    ]
    return _table(columns)


def extra_cell_features(record: jax.Array) -> jax.Array:
    """float32[36, 10]: the channels that the full layout adds."""
    enemy, coming = _plane(record, ENEMY), _plane(record, TRANSMISSION)
    holds, resource = _plane(record, CELL), _plane(record, RESOURCE)
    columns = [
        _one_hot((coming >> 4 & 7) - 1, len(EnemyType)),
        coming & 1,
        holds >> 2 & 1,
        enemy >> 7,
        (holds >> 6) / MAX_SEEN,
        coming >> 7,
        (resource >> 4) / MAX_DISTANCE,
    ]
    return _table(columns)


def _table(columns: list[jax.Array]) -> jax.Array:
    """float32[36, n]: columns of one or more channels side by side."""
    wide = [column.reshape(CELLS, -1).astype(jnp.float32) for column in columns]
    return jnp.concatenate(wide, axis=1)


def extra_features(record: jax.Array) -> jax.Array:
    """float32[41]: the numbers that the full layout adds."""
    credits, energy = _word(record, "credits"), _word(record, "energy")
    until_task = _word(record, "next_task") - _word(record, "turn")
    can_pay = (credits >= _CREDITS) & (energy >= _ENERGY)
    numbers = [
        record[BYTE["flags"]] >> 2 & 1,
        _word(record, "turn") / 20,
        jnp.clip(until_task / 12, -1, 1),
        _word(record, "interval") / FIRST_INTERVAL,
        *(
            jnp.minimum(x, 1)
            for x in (
                _word(record, "pending") / 9,
                record[BYTE["atk_uses"]] / MAX_ATK_USES,
                _word(record, "score") / 50,
                record[BYTE["saved"]] / MAX_SAVED_STATES,
                credits / 20,
                energy / 20,
            )
        ),
    ]
    return jnp.concatenate(
        [
            jnp.stack([jnp.asarray(x, jnp.float32) for x in numbers]),
            _one_hot(record[BYTE["stage"]] - 1, LAST_STAGE).astype(jnp.float32),
            (owned_features(record) * can_pay).astype(jnp.float32),
        ]
    )
