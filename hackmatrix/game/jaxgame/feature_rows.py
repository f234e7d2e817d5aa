"""The features of a record as a short dense part plus a sum of a few rows of a constant table.

Most of the 1,545 features are zeros and one-hots: a board has about 8 blocks and few enemies. A
network that multiplies its features by a matrix W may add rows of `table @ W` instead, one for each
place where there is something to see: the same result, at a fraction of the cost on CPU.

Each cell has four places. A code says what is there, 0 for nothing:

| place | code made of | layout |
|---|---|---|
| enemy | type, hp, stunned, from_siphon | |
| block | kind with points or program, siphoned | |
| mark | center, data siphon, exit | |
| | last seen a hidden cryptog | full |
| transmission | turns | |
| | that there is one, its type | full |

The dense part has spawn counts, resources and the player's numbers; in the full layout also the
number of enemies on a cell, lines of fire, distances and the other numbers of the game.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.engine import observation as engine
from hackmatrix.game.jaxgame.observation import (
    extra_features,
    owned_features,
    player_features,
    scale,
)
from hackmatrix.game.rules.board import CELLS, MAX_POINTS, Content
from hackmatrix.game.rules.observation import (
    CELL_CHANNELS,
    CELL_FEATURES,
    CLASSIC_SIZE,
    EXTRA_CELL_CHANNELS,
    EXTRA_CELL_FEATURES,
    FEATURE_SIZE,
    FIELD,
    PLAYER_FEATURES,
    CellBytes,
    Channel,
    Field,
    channel_starts,
)
from hackmatrix.game.rules.programs import PROGRAMS

_FIRST_CELL = PLAYER_FEATURES + len(PROGRAMS)  # index of the first feature of cell 0
_CHANNELS = CELL_CHANNELS + EXTRA_CELL_CHANNELS
_STARTS = channel_starts(_CHANNELS)
_DENSE = ("spawn", "credits", "energy")  # channels in the dense part
_EXTRA_DENSE = ("enemies_seen", "in_fire", "exit_distance")


def _joined(*names: str) -> Field:
    """Adjacent fields of a byte, from the lowest on, read as one number."""
    fields = [FIELD[name] for name in names]
    width = sum(field.width for field in fields)
    last = fields[-1]
    assert last.first + last.width == fields[0].first + width, names
    return fields[0]._replace(width=width, largest=2**width - 1)


_CONDITION = _joined("enemy_hp", "stunned", "from_siphon")
_MARKS = _joined("center", "data_siphon", "exit")
_TYPES = FIELD["enemy_type"].largest
_TURNS = 2 ** FIELD["turns"].width  # there is a code for every value of the field
_DATA = 2  # code of a data block without points; 1 is a question block
_PROGRAM = _DATA + MAX_POINTS + 1
_BLOCKS = _PROGRAM + len(PROGRAMS)


def enemy_code(cell: CellBytes) -> Any:
    """The code of a visible enemy, 1..64; 0 for none."""
    kind = cell.field("enemy_type")
    return (kind > 0) * (kind + _TYPES * _CONDITION.of(cell.enemy))


def block_code(cell: CellBytes) -> Any:
    """The code of a block, 1..69; 0 for none."""
    kind = cell.field("block")
    return (
        (kind == Content.QUESTION) * 1
        + (kind == Content.DATA) * (_DATA + cell.value)
        + (kind == Content.PROGRAM) * (_PROGRAM + cell.value)
        + _BLOCKS * cell.field("siphoned")
    )


def mark_code(cell: CellBytes, full: bool) -> Any:
    """The code of the marks, 1..7 in the classic layout, 1..15 in the full one; 0 for none."""
    return _MARKS.of(cell.cell) + full * (_MARKS.largest + 1) * cell.field("last_seen")


def transmission_code(cell: CellBytes, full: bool) -> Any:
    """The code of a transmission, 1..7 in the classic layout, 1..40 in the full one; 0 for none."""
    turns = cell.field("turns")
    if not full:
        return turns
    return cell.field("transmission") * (1 + turns + _TURNS * cell.field("coming_type"))


def _examples(full: bool) -> list[list[CellBytes]]:
    """For each place, a cell for every code except 0, in order."""
    last_value = {Content.DATA: MAX_POINTS, Content.PROGRAM: len(PROGRAMS) - 1}
    enemies = _every(enemy_type=_TYPES, enemy_hp=3, stunned=1, from_siphon=1)
    blocks = (
        cell
        for cell in _every(block=3, siphoned=1, value=len(PROGRAMS) - 1)
        if cell.value <= last_value.get(cell.field("block"), 0)
    )
    marks = _every(center=1, data_siphon=1, exit=1, last_seen=int(full))
    transmissions = _every(transmission=1, turns=_TURNS - 1, coming_type=_TYPES)
    return [
        _in_order({enemy_code(cell): cell for cell in enemies}),
        _in_order({block_code(cell): cell for cell in blocks}),
        _in_order({mark_code(cell, full): cell for cell in marks}),
        _in_order({transmission_code(cell, full): cell for cell in transmissions}),
    ]


def _every(**largest: int) -> Iterator[CellBytes]:
    """Cells with all combinations of values from 0 to the largest in these fields."""
    for numbers in product(*(range(most + 1) for most in largest.values())):
        yield CellBytes.holding(dict(zip(largest, numbers, strict=True)))


def _in_order(by_code: dict[int, CellBytes]) -> list[CellBytes]:
    """The cells with codes 1, 2 and so on, up to the last."""
    return [by_code[code] for code in range(1, max(by_code) + 1)]


class _Table(NamedTuple):
    """The table, and where its rows are."""

    columns: np.ndarray
    weights: np.ndarray
    dense_columns: np.ndarray
    first: np.ndarray  # int32[places, CELLS], the row of code 1 in each place of each cell


class HackMatrixFeatureRows:
    """Splits records into table rows and a dense part, which together give `features`.

    The feature vector of a record is zero, plus `dense` at `dense_columns`, plus for each of its
    `rows` r the values `weights[r]` at `columns[r]`. Row 0 adds nothing. The table is made when it
    is first needed.
    """

    def __init__(self, layout: str) -> None:
        self._full = layout == "full"
        self.size = FEATURE_SIZE[layout]

    @property
    def columns(self) -> np.ndarray:
        """int32[R, J]: the features of a row; shorter rows are padded with column 0, weight 0."""
        return _table(self._full).columns

    @property
    def weights(self) -> np.ndarray:
        """float32[R, J]."""
        return _table(self._full).weights

    @property
    def dense_columns(self) -> np.ndarray:
        """int32[D]."""
        return _table(self._full).dense_columns

    def __call__(self, record: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`dense` float32[D] and `rows` int32[144] of a record uint8[RECORD_SIZE]."""
        record = record.astype(jnp.int32)
        cells = CellBytes.of(record)
        codes = jnp.stack(
            [
                enemy_code(cells),
                block_code(cells),
                mark_code(cells, self._full),
                transmission_code(cells, self._full),
            ]
        )
        rows = jnp.where(codes > 0, _table(self._full).first - 1 + codes, 0).reshape(-1)
        return self._dense(record, cells), rows.astype(jnp.int32)

    def _dense(self, record: jax.Array, cells: CellBytes) -> jax.Array:
        channels = _dense_channels(self._full)
        parts = [scale(channel, cells.field(channel.name)) for channel in channels]
        parts += [player_features(record), owned_features(record)]
        if self._full:
            parts += [extra_features(record)]
        return jnp.concatenate([part.astype(jnp.float32) for part in parts])


@cache
def _table(full: bool) -> _Table:
    numbers = [[_cell_numbers(cell, full) for cell in place] for place in _examples(full)]
    sizes = np.array([len(place) for place in numbers])
    first = 1 + CELLS * np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows: list[dict[int, float]] = [{}]
    for place in numbers:
        for cell in range(CELLS):
            rows += [{_column(c, cell): x for c, x in row.items()} for row in place]
    width = max(len(row) for row in rows)
    columns = np.zeros((len(rows), width), np.int32)
    weights = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        columns[i, : len(row)] = list(row)
        weights[i, : len(row)] = list(row.values())
    dense_columns = _dense_columns(full)
    both = np.concatenate([np.unique(columns[weights != 0]), dense_columns])
    assert sorted(both) == list(range(FEATURE_SIZE["full" if full else "classic"]))
    by_cell = (first[:, None] + sizes[:, None] * np.arange(CELLS)).astype(np.int32)
    return _Table(columns, weights, dense_columns, by_cell)


def _dense_columns(full: bool) -> np.ndarray:
    cells = np.arange(CELLS)
    columns = [_column(_STARTS[channel.name], cells) for channel in _dense_channels(full)]
    columns += [np.arange(_FIRST_CELL)]
    if full:
        columns += [np.arange(CLASSIC_SIZE + CELLS * EXTRA_CELL_FEATURES, FEATURE_SIZE["full"])]
    return np.concatenate(columns).astype(np.int32)


def _dense_channels(full: bool) -> list[Channel]:
    names = _DENSE + (_EXTRA_DENSE if full else ())
    return [channel for channel in _CHANNELS if channel.name in names]


def _cell_numbers(cell: CellBytes, full: bool) -> dict[int, float]:
    """The nonzero channels of a cell with these bytes, computed by the Python engine."""
    numbers = engine.cell_features(cell)
    if full:
        numbers += engine.extra_cell_features(cell)
    return {channel: number for channel, number in enumerate(numbers) if number}


def _column(channel: int, cell: Any) -> Any:
    """Index of the feature for a channel of a cell.

    The full layout's come after the classic ones.
    """
    if channel < CELL_FEATURES:
        return _FIRST_CELL + cell * CELL_FEATURES + channel
    return CLASSIC_SIZE + cell * EXTRA_CELL_FEATURES + channel - CELL_FEATURES
