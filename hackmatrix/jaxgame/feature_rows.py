"""The features of a record as a sum of few rows of a constant table, beside a short dense part.

Most of the 1,545 features are zeros and one-hots: on a board stand some 8 blocks and few enemies.
A network that multiplies its features by a matrix W may add rows of `table @ W` instead, one for
each place where there is something to see: the same sum, at a fraction of the cost on CPU.

Each cell has four places. What is there is told by a code, 0 for nothing:

| place | code made of | layout |
|---|---|---|
| enemy | type, hp, stunned, from_siphon | |
| block | kind with points or program, siphoned | |
| mark | center, data siphon, exit | |
| | last seen a hidden cryptog | full |
| transmission | turns | |
| | that there is one, its type | full |

Dense are spawn counts, resources and the player's numbers; in the full layout also the enemies
counted on a cell, lines of fire, distances and the further numbers of the game.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.engine import observation as engine
from hackmatrix.jaxgame.observation import extra_features, owned_features, player_features
from hackmatrix.rules.board import CELLS, MAX_POINTS, MAX_RESOURCE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import (
    CELL,
    CELL_FEATURES,
    CLASSIC_SIZE,
    ENEMY,
    EXTRA_CELL_FEATURES,
    FEATURE_SIZE,
    MAX_DISTANCE,
    MAX_SEEN,
    PLANES,
    PLAYER_FEATURES,
    RECORD_SIZE,
    RESOURCE,
    SPAWN,
    TRANSMISSION,
    VALUE,
)
from hackmatrix.rules.programs import PROGRAMS

_FIRST_CELL = PLAYER_FEATURES + len(PROGRAMS)  # where the features of cell 0 begin
_DATA = 2  # code of a data block without points; 1 is a question block
_PROGRAM = _DATA + MAX_POINTS + 1
_BLOCKS = _PROGRAM + len(PROGRAMS)
_TURNS = 8  # values of the bits that hold a transmission's turns


class Planes(NamedTuple):
    """Bytes of a record, integers of any one shape."""

    enemy: Any = 0
    transmission: Any = 0
    cell: Any = 0
    resource: Any = 0
    value: Any = 0
    spawn: Any = 0


def enemy_code(planes: Planes) -> Any:
    """1..64, or 0."""
    kind = planes.enemy & 7
    return (kind > 0) * (kind + 4 * (planes.enemy >> 3 & 15))


def block_code(planes: Planes) -> Any:
    """1..69, or 0."""
    kind = planes.cell & 3
    return (
        (kind == Content.QUESTION) * 1
        + (kind == Content.DATA) * (_DATA + planes.value)
        + (kind == Content.PROGRAM) * (_PROGRAM + planes.value)
        + _BLOCKS * (planes.cell >> 2 & 1)
    )


def mark_code(planes: Planes, full: bool) -> Any:
    """1..7 in the classic layout, 1..15 in the full one, or 0."""
    return (planes.cell >> 3 & 7) + full * 8 * (planes.enemy >> 7)


def transmission_code(planes: Planes, full: bool) -> Any:
    """1..7 in the classic layout, 1..40 in the full one, or 0."""
    turns = planes.transmission >> 1 & 7
    if not full:
        return turns
    return (planes.transmission & 1) * (1 + turns + _TURNS * (planes.transmission >> 4 & 7))


def _examples(full: bool) -> list[list[tuple[int, Planes]]]:
    """For each place every code but 0, in order, with the bytes that have it."""
    places: list[dict[int, Planes]] = [{}, {}, {}, {}]
    enemies, blocks, marks, transmissions = places
    for enemy in range(128):
        if enemy & 7 <= len(EnemyType):
            planes = Planes(enemy=enemy)
            enemies[enemy_code(planes)] = planes
    values = {Content.DATA: MAX_POINTS + 1, Content.PROGRAM: len(PROGRAMS)}
    for cell in range(8):
        for value in range(values.get(Content(cell & 3), 1)):
            planes = Planes(cell=cell, value=value)
            blocks[block_code(planes)] = planes
    for cell in range(0, 64, 8):
        for enemy in (0, 128) if full else (0,):
            planes = Planes(cell=cell, enemy=enemy)
            marks[mark_code(planes, full)] = planes
    for transmission in range(128):
        if transmission >> 4 <= len(EnemyType):
            planes = Planes(transmission=transmission)
            transmissions.setdefault(transmission_code(planes, full), planes)
    for place in places:
        del place[0]
        assert sorted(place) == list(range(1, len(place) + 1))
    return [sorted(place.items()) for place in places]


class FeatureRows:
    """Splits records into table rows and a dense part; `features` is what they add up to.

    The features of a record are zeros, plus `dense` at `dense_columns`, plus for each of its
    `rows` r the numbers `weights[r]` at `columns[r]`. Row 0 is nothing.

    Attributes:
        size: features of a record.
        columns: int32[R, J], features of a row; where a row has fewer, column 0 of weight 0.
        weights: float32[R, J].
        dense_columns: int32[D].
    """

    def __init__(self, layout: str) -> None:
        self._full = layout == "full"
        self.size = FEATURE_SIZE[layout]
        numbers = [
            [_cell_numbers(planes, self._full) for _, planes in place]
            for place in _examples(self._full)
        ]
        sizes = np.array([len(place) for place in numbers])
        first = 1 + CELLS * np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # The row of code 1 in each place of each cell.
        self._first = (first[:, None] + sizes[:, None] * np.arange(CELLS)).astype(np.int32)
        rows: list[dict[int, float]] = [{}]
        for place in numbers:
            for cell in range(CELLS):
                rows += [{_column(c, cell): x for c, x in row.items()} for row in place]
        width = max(len(row) for row in rows)
        self.columns = np.zeros((len(rows), width), np.int32)
        self.weights = np.zeros((len(rows), width), np.float32)
        for i, row in enumerate(rows):
            self.columns[i, : len(row)] = list(row)
            self.weights[i, : len(row)] = list(row.values())
        in_rows = np.unique(self.columns[self.weights != 0])
        self.dense_columns = self._dense_columns()
        both = np.concatenate([in_rows, self.dense_columns])
        assert sorted(both) == list(range(self.size))

    def __call__(self, record: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`dense` float32[D] and `rows` int32[144] of a record uint8[RECORD_SIZE]."""
        record = record.astype(jnp.int32)
        planes = Planes(*(record[i * CELLS : (i + 1) * CELLS] for i in range(len(PLANES))))
        codes = jnp.stack(
            [
                enemy_code(planes),
                block_code(planes),
                mark_code(planes, self._full),
                transmission_code(planes, self._full),
            ]
        )
        rows = jnp.where(codes > 0, self._first - 1 + codes, 0).reshape(-1)
        return self._dense(record, planes), rows.astype(jnp.int32)

    def _dense(self, record: jax.Array, planes: Planes) -> jax.Array:
        resource = planes.resource
        channels = [
            jnp.minimum(planes.spawn / 9, 1),
            (resource & 3) / MAX_RESOURCE,
            (resource >> 2 & 3) / MAX_RESOURCE,
        ]
        numbers = [player_features(record), owned_features(record)]
        if self._full:
            channels += [
                (planes.cell >> 6) / MAX_SEEN,
                planes.transmission >> 7,
                (resource >> 4) / MAX_DISTANCE,
            ]
            numbers += [extra_features(record)]
        return jnp.concatenate([x.astype(jnp.float32) for x in (*channels, *numbers)])

    def _dense_columns(self) -> np.ndarray:
        cells = np.arange(CELLS)
        columns = [_column(channel, cells) for channel in (35, 37, 38)]
        columns += [np.arange(_FIRST_CELL)]
        if self._full:
            extra = [_column(CELL_FEATURES + channel, cells) for channel in (7, 8, 9)]
            columns[3:3] = extra
            columns += [np.arange(CLASSIC_SIZE + CELLS * EXTRA_CELL_FEATURES, FEATURE_SIZE["full"])]
        return np.concatenate(columns).astype(np.int32)


def _cell_numbers(planes: Planes, full: bool) -> dict[int, float]:
    """The channels of a cell with these bytes that are not 0, as the Python engine has them."""
    record = bytearray(RECORD_SIZE)
    starts = (ENEMY, TRANSMISSION, CELL, RESOURCE, VALUE, SPAWN)
    for start, byte in zip(starts, planes, strict=True):
        record[start] = byte
    numbers = engine.cell_features(bytes(record), 0)
    if full:
        numbers += engine.extra_cell_features(bytes(record), 0)
    return {channel: number for channel, number in enumerate(numbers) if number}


def _column(channel: int, cell: Any) -> Any:
    """The feature that is this channel of a cell; the full layout's follow the classic ones."""
    if channel < CELL_FEATURES:
        return _FIRST_CELL + cell * CELL_FEATURES + channel
    return CLASSIC_SIZE + cell * EXTRA_CELL_FEATURES + channel - CELL_FEATURES
