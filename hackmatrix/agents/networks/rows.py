"""The rows of a record in the tables of `row_tables.py`: their numbers, on NumPy and JAX alike.

`DEFINITION` holds the tables as arrays of integers, which the native engine reads too. A symbol is
looked up by a key, the sum of what each byte of the cell adds to it (`parts`). Rows of a view are
numbered from 1; 0 stands for none.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.networks.row_tables import DIRECTION, PLAYER, SYMBOLS, Quantity, View
from hackmatrix.game.rules.board import CELLS, DIRECTIONS, SIZE
from hackmatrix.game.rules.observation import (
    BYTE,
    FIELD,
    PLANE,
    SCALARS,
    CellBytes,
    number_of,
)
from hackmatrix.game.rules.programs import PROGRAMS

Array = Any  # of NumPy or JAX
Integers = np.ndarray[Any, np.dtype[np.int32]]

DIRECTION_SHARE = 4  # the view of a direction is this part of `hidden_dim` wide
REACH = 2 * SIZE - 1  # offsets of rows or columns: -5 to 5
BEYOND = CELLS  # the number of a cell beyond the edge
_BYTES = 256
_NAMES = list(SYMBOLS)
_PLANES = [*CellBytes._fields, "owned"]
_SCALAR_BYTES = (
    "cell",
    *(scalar.name for scalar in SCALARS if scalar.name not in ("cell", "next_task", "owned")),
    "until_task",
)
_OWNED_BYTES = tuple(f"owned_byte_{i}" for i in range(-(-len(PROGRAMS) // 8)))
_VALUES = (*_SCALAR_BYTES, *_OWNED_BYTES)  # at most 255 each


class ViewTables(NamedTuple):
    """The tables of a view; a row of an array is a table, or a cell of one."""

    around: Integers  # [n, 4]: symbol, first row, number of symbols, reach
    on_board: Integers  # [n, 3]: symbol, first row, number of symbols
    joint: Integers  # [n, 6]: table, first row, rows, columns, symbol, what the symbol is times
    quantities: Integers  # [n, 2]: quantity, first row


class Definition(NamedTuple):
    """All tables, in the order in which the native engine takes them."""

    parts: Integers  # [P, 256], what a byte adds to a key
    lookup: Integers  # [L, 1], symbols by keys, those of all symbols and numbers in turn
    symbols: Integers  # [S, 2]: where its symbols begin in `lookup`, the one beyond the edge
    symbol_parts: Integers  # [n, 3]: symbol, plane, part
    values: Integers  # [V, 3]: first byte in the record, bytes, byte of what is subtracted or -1
    quantities: Integers  # [N, 1]: where its symbols begin in `lookup`
    quantity_parts: Integers  # [n, 3]: quantity, value, part
    barrier: Integers  # [1, 2]: a symbol, and its value where the view of a direction has no rows
    player: ViewTables
    direction: ViewTables

    def arrays(self) -> list[Integers]:
        """Its arrays, those of the views at last."""
        return [*self[:-2], *self.player, *self.direction]


# --- the tables as arrays ------------------------------------------------------------------------


class _Keys:
    """Collects parts of keys, and symbols by keys."""

    def __init__(self) -> None:
        self.parts = list[Integers]()
        self.lookup = list[int]()

    def add(self, readers: Sequence[tuple[Any, int]], of: Callable[..., int]) -> list[int]:
        """Adds a symbol of some fields; returns the numbers of their parts.

        Args:
            readers: of each field what makes its values of all bytes, and its largest value.
            of: makes the symbol of these values.
        """
        added, stride = list[int](), 1
        for read, largest in readers:
            values = np.minimum(read(np.arange(_BYTES)), largest) * stride
            added.append(len(self.parts))
            self.parts.append(values.astype(np.int32))
            stride *= largest + 1
        ranges = [range(largest + 1) for _, largest in readers]
        # The first field counts fastest in a key.
        keys = itertools.product(*reversed(ranges))
        self.lookup += [int(of(*reversed(key))) for key in keys]
        return added


def _reader_of_cell(name: str) -> tuple[str, Any, int]:
    """The plane of a field of a cell, what reads it of a byte, its largest value."""
    if name == "owned":
        return name, lambda byte: byte, 1
    field = FIELD[name]
    return field.byte, field.of, field.largest


def _reader_of_scalar(name: str) -> tuple[str, Any]:
    """The value that holds a number of the game, and what reads it of a byte."""
    if name.startswith("owned_"):
        program = int(name.removeprefix("owned_"))
        return _OWNED_BYTES[program // 8], lambda byte: byte >> program % 8 & 1
    if name in FIELD and name not in _VALUES:
        return FIELD[name].byte, FIELD[name].of
    return name, lambda byte: byte


def _table(rows: Iterable[Sequence[int]], columns: int) -> Integers:
    return np.array([*rows], np.int32).reshape(-1, columns)


def _make() -> tuple[Definition, int, int]:
    keys = _Keys()
    symbols, symbol_parts, sizes = [], [], dict[str, int]()
    for index, (name, symbol) in enumerate(SYMBOLS.items()):
        fields = [_reader_of_cell(field) for field in symbol.fields.split()]
        start = len(keys.lookup)
        parts = keys.add([(read, largest) for _, read, largest in fields], symbol.of)
        symbols.append((start, symbol.outside))
        planes = (_PLANES.index(plane) for plane, _, _ in fields)
        symbol_parts += [(index, *pair) for pair in zip(planes, parts, strict=True)]
        sizes[name] = max(keys.lookup[start:])
        assert keys.lookup[start] == 0, f"{name}: an empty cell has a symbol"
    # Each number of the game is one of both views, or of the player's alone.
    quantities, quantity_parts, largest = [], [], list[int]()
    for index, quantity in enumerate(PLAYER.quantities):
        readers = [(_reader_of_scalar(name), most) for name, most in quantity.fields.items()]
        start = len(keys.lookup)
        parts = keys.add([(read, most) for (_, read), most in readers], quantity.of)
        quantities.append((start,))
        values = (_VALUES.index(value) for (value, _), _ in readers)
        quantity_parts += [(index, *pair) for pair in zip(values, parts, strict=True)]
        largest.append(max(keys.lookup[start:]))
    player, player_rows = _view(PLAYER, sizes, largest)
    direction, direction_rows = _view(DIRECTION, sizes, largest)
    definition = Definition(
        np.array(keys.parts, np.int32),
        _table(((symbol,) for symbol in keys.lookup), 1),
        _table(symbols, 2),
        _table(symbol_parts, 3),
        _table(_values(), 3),
        _table(quantities, 1),
        _table(quantity_parts, 3),
        _table([(_NAMES.index("barrier"), SYMBOLS["barrier"].outside)], 2),
        player,
        direction,
    )
    return definition, player_rows, direction_rows


def _values() -> Iterable[tuple[int, int, int]]:
    size = {scalar.name: scalar.size for scalar in SCALARS}
    for name in _SCALAR_BYTES:
        if name == "until_task":
            yield BYTE["next_task"], size["next_task"], BYTE["turn"]
        else:
            yield BYTE[name], size[name], -1
    for i in range(len(_OWNED_BYTES)):
        yield BYTE["owned"] + i, 1, -1


def _view(view: View, sizes: dict[str, int], largest: list[int]) -> tuple[ViewTables, int]:
    """The tables of a view, and the number of its rows."""
    end = 1  # row 0 is none

    def take(rows: int) -> int:
        nonlocal end
        end += rows
        return end - rows

    def index(quantity: Quantity) -> int:
        return next(i for i, other in enumerate(PLAYER.quantities) if other is quantity)

    around = [
        (_NAMES.index(name), take(REACH**2 * sizes[name]), sizes[name], reach)
        for name, reach in view.around
    ]
    on_board = [
        (_NAMES.index(name), take(CELLS * sizes[name]), sizes[name]) for (name,) in view.on_board
    ]
    joint = []
    for table, (cells,) in enumerate(view.joint):
        counts = [sizes[name] + 1 for _, name in cells]
        first, stride = take(int(np.prod(counts)) - 1), 1
        for (offset, name), count in zip(cells, counts, strict=True):
            joint.append((table, first, *offset, _NAMES.index(name), stride))
            stride *= count
    quantities = [(index(each), take(largest[index(each)])) for each in view.quantities]
    tables = ViewTables(
        _table(around, 4), _table(on_board, 3), _table(joint, 6), _table(quantities, 2)
    )
    return tables, end


DEFINITION, PLAYER_ROWS, DIRECTION_ROWS = _make()


# --- the rows of records -------------------------------------------------------------------------


class _Sight(NamedTuple):
    """A view from each cell of the player, on the mirrored board; constants."""

    origin: Integers  # [36], the cell that it looks from, or BEYOND
    offset: Integers  # [36, 36], of each cell: the number of its offset
    steps: Integers  # [36, 36], how many steps that is; more than any reach from BEYOND
    joint: Integers  # [36, n], the cells of `ViewTables.joint`, or BEYOND


@cache
def _sight(direction: int | None) -> _Sight:
    """The view of a direction; None: the player's."""
    forward = (1, 0) if direction is None else DIRECTIONS[direction]
    side = (abs(forward[1]), abs(forward[0]))
    ahead = (0, 0) if direction is None else forward
    offsets = _tables_of(direction).joint[:, 2:4].tolist()
    players = np.arange(CELLS)
    rows, cols = players // SIZE + ahead[0], players % SIZE + ahead[1]
    rows_off, cols_off = (
        players // SIZE - rows[:, None],
        players % SIZE - cols[:, None],
    )
    along, across = (rows_off * axis[0] + cols_off * axis[1] for axis in (forward, side))
    at = [
        _cell(rows + forward[0] * f + side[0] * s, cols + forward[1] * f + side[1] * s)
        for f, s in offsets
    ]
    return _Sight(
        _cell(rows, cols),
        (along + SIZE - 1) * REACH + across + SIZE - 1,
        np.abs(along) + np.abs(across),
        np.stack(at, axis=1),
    )


def _cell(rows: np.ndarray[Any, Any], cols: np.ndarray[Any, Any]) -> Integers:
    on_board = (rows >= 0) & (rows < SIZE) & (cols >= 0) & (cols < SIZE)
    return np.where(on_board, rows * SIZE + cols, BEYOND)


def _tables_of(direction: int | None) -> ViewTables:
    return DEFINITION.player if direction is None else DEFINITION.direction


def _mirrors() -> Iterable[tuple[list[int], list[int]]]:
    """For each frame the cells of the record in the order of the mirrored board, and directions."""
    for signs in itertools.product((1, -1), repeat=2):
        line = range(SIZE)
        rows, cols = (line[::sign] for sign in signs)
        cells = [row * SIZE + col for row in rows for col in cols]
        turned = [(rows * signs[0], cols * signs[1]) for rows, cols in DIRECTIONS]
        yield cells, [DIRECTIONS.index(step) for step in turned]


_CELLS_OF, _DIRECTIONS_OF = (np.array(each, np.int32) for each in zip(*_mirrors(), strict=True))


def frames(records: Array, xp: Any) -> Array:
    """int[B], 0..3: whether the rows (2) and the columns (1) of a board are mirrored."""
    exits = FIELD["exit"].of(records[:, PLANE["cell"] : PLANE["cell"] + CELLS])
    exits = exits.reshape(-1, SIZE, SIZE)
    half = SIZE // 2
    rows, cols = exits[:, :half].any(axis=(1, 2)), exits[:, :, :half].any(axis=(1, 2))
    return 2 * rows.astype(xp.int32) + cols.astype(xp.int32)


def real_directions(logits: Array, frame: Array, xp: Any) -> Array:
    """The logits [B, 4] of the directions of records, from those of the mirrored boards."""
    return xp.take_along_axis(logits, xp.asarray(_DIRECTIONS_OF)[frame], axis=1)


def rows_of(records: Array, xp: Any) -> tuple[Array, Array]:
    """The rows of B records uint8[B, RECORD_SIZE]; 0: none.

    Args:
        records: arrays of `xp`.
        xp: `numpy` or `jax.numpy`.

    Returns:
        int32[B, P] in the player's tables, int32[B, 4, Q] in those of directions, of the mirrored
        board.
    """
    records = records.astype(xp.int32)
    frame = frames(records, xp)
    player = xp.asarray(_CELLS_OF)[frame]
    player = xp.argmax(player == number_of(records, "cell")[:, None], axis=1)
    symbols = _symbols(records, frame, xp)
    quantities = _quantities(records, player, xp)
    own, *others = (
        _rows_of_view(direction, player, symbols, quantities, xp)
        for direction in (None, *range(len(DIRECTIONS)))
    )
    return own, xp.stack(others, axis=1)


def _symbols(records: Array, frame: Array, xp: Any) -> Array:
    """int32[B, S, 37]: the symbols of the mirrored board's cells, at last that beyond the edge."""
    cells = CellBytes.of(records)
    value, owned = cells.value, number_of(records, "owned")[:, None]
    is_owned = (value < len(PROGRAMS)) & (owned >> xp.minimum(value, len(PROGRAMS)) & 1 > 0)
    planes = [*cells, is_owned.astype(xp.int32)]
    starts, outside = DEFINITION.symbols.T
    symbols = _look_up(planes, DEFINITION.symbol_parts, starts, xp)
    order = xp.asarray(_CELLS_OF)[frame][:, None, :]
    symbols = xp.take_along_axis(symbols, order, axis=2)
    edge = xp.broadcast_to(xp.asarray(outside)[:, None], (*symbols.shape[:2], 1))
    return xp.concatenate([symbols, edge], axis=2)


def _quantities(records: Array, player: Array, xp: Any) -> Array:
    """int32[B, N]: the symbols of the game's numbers."""
    values = []
    for first, size, minus in DEFINITION.values.tolist():
        value = _unsigned(records, first, size)
        if minus >= 0:
            value = value - _unsigned(records, minus, size)
        values.append(xp.clip(value, 0, _BYTES - 1))
    values[_VALUES.index("cell")] = player
    return _look_up(values, DEFINITION.quantity_parts, DEFINITION.quantities[:, 0], xp)


def _unsigned(records: Array, first: int, size: int) -> Array:
    """A little-endian number of one byte or two."""
    high = records[:, first + 1] << 8 if size == 2 else 0
    return records[:, first] | high


def _look_up(bytes_of: Sequence[Array], parts: Integers, starts: Integers, xp: Any) -> Array:
    """The symbols with these keys, [B, their number, ...]."""
    keys: list[Any] = [int(start) for start in starts]
    table = xp.asarray(DEFINITION.parts)
    for symbol, source, part in parts.tolist():
        keys[symbol] = keys[symbol] + table[part][bytes_of[source]]
    return xp.asarray(DEFINITION.lookup[:, 0])[xp.stack(keys, axis=1)]


def _rows_of_view(
    direction: int | None, player: Array, symbols: Array, quantities: Array, xp: Any
) -> Array:
    """int32[B, P]: the rows of a view."""
    tables, sight = _tables_of(direction), _sight(direction)
    offset, steps, cells = (
        xp.asarray(each)[player] for each in (sight.offset, sight.steps, sight.joint)
    )
    symbol, first, sizes, reach = tables.around.T[..., None]
    contents = symbols[:, symbol[:, 0], :CELLS]
    rows = first + offset[:, None] * sizes + contents - 1
    parts = [xp.where((contents > 0) & (steps[:, None] <= reach), rows, 0)]
    symbol, first, sizes = tables.on_board.T[..., None]
    contents = symbols[:, symbol[:, 0], :CELLS]
    parts.append(xp.where(contents > 0, first + np.arange(CELLS) * sizes + contents - 1, 0))
    table, first, _, _, symbol, times = tables.joint.T
    flat = symbols.reshape(len(symbols), -1)
    contents = xp.take_along_axis(flat, symbol * (CELLS + 1) + cells, axis=1)
    of_table = table[:, None] == np.arange(table.max() + 1)
    index = (contents * times) @ of_table.astype(np.int32)
    starts = first[of_table.argmax(axis=0)]
    parts.append(xp.where(index > 0, starts + index - 1, 0))
    quantity, first = tables.quantities.T
    contents = quantities[:, quantity]
    parts.append(xp.where(contents > 0, first + contents - 1, 0))
    rows = xp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    if direction is None:
        return rows.astype(xp.int32)
    origin = xp.asarray(sight.origin)[player]
    symbol, closed = DEFINITION.barrier[0]
    is_open = xp.take_along_axis(symbols[:, symbol], origin[:, None], axis=1) != closed
    return xp.where(is_open, rows, 0).astype(xp.int32)
