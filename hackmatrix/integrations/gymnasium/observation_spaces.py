"""The layouts of observations: their spaces, and how they are made from a compact record."""

from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import observation as engine
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.board import CELLS, LIMIT, SIZE
from hackmatrix.game.rules.observation import (
    CELL_FEATURES,
    CLASSIC_SIZE,
    EXTRA_CHANNELS,
    FEATURE_SIZE,
    PLANE,
    PLAYER_CHANNELS,
    PLAYER_FEATURES,
    RECORD_SIZE,
    CellBytes,
    channel_starts,
)
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.tactical import HIGH, LOW, SCALES

Layout = Literal["dict", "classic", "full", "tactical", "compact"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Floats = NDArray[np.float32]

_FIRST_CELL = PLAYER_FEATURES + len(PROGRAMS)
_PLANES_END = len(PLANE) * CELLS
_ROWS_KEPT = 16_384


def space_of(layout: str) -> spaces.Space[Any]:
    """The space of a layout's observations.

    `dict`: `player` float32[10], `programs` int32[23] and `grid` float32[6, 6, 42]. `classic`: the
    same numbers as float32[1545]. `full`: float32[1946]. `tactical`: float32[432]. `compact`:
    uint8[RECORD_SIZE], the record of `rules.observation`.

    The bounds of `dict` are those of the original, 0 and 1, so that models cross both ways; as
    there, more than 10 data siphons or 3 of attack go past them.

    Raises:
        UserError: there is no such layout.
    """
    if layout == "dict":
        return spaces.Dict(
            {
                "player": spaces.Box(0, 1, (PLAYER_FEATURES,), np.float32),
                "programs": spaces.Box(0, 1, (len(PROGRAMS),), np.int32),
                "grid": spaces.Box(0, 1, (SIZE, SIZE, CELL_FEATURES), np.float32),
            }
        )
    if layout == "compact":
        return spaces.Box(0, 255, (RECORD_SIZE,), np.uint8)
    if layout not in FEATURE_SIZE:
        raise UserError(f"observation must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if layout == "tactical":
        scales = np.array(SCALES, np.float32)
        low, high = (np.array(bound, np.float32) * scales for bound in (LOW, HIGH))
        return spaces.Box(low, high, dtype=np.float32)
    low = np.zeros(FEATURE_SIZE[layout], np.float32)
    if layout == "full":
        low[_extra("until_task")] = -1
    return spaces.Box(low, _bounds(layout), dtype=np.float32)


def layout_of(space: spaces.Space[Any]) -> Layout | None:
    """The layout whose observations have the shapes of a space, whatever its bounds, or None."""
    return next((layout for layout in LAYOUTS if _shapes(space_of(layout)) == _shapes(space)), None)


def _shapes(space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: each.shape for name, each in space.items()}
    return space.shape


def _bounds(layout: str) -> Floats:
    """The largest value of each feature: 1, but for numbers that are not capped."""
    high = np.ones(FEATURE_SIZE[layout], np.float32)
    player = channel_starts(PLAYER_CHANNELS)
    for channel in PLAYER_CHANNELS:
        if channel.name in ("siphons", "attack"):
            high[player[channel.name]] = (LIMIT - channel.zero) / channel.scale
    if layout == "full":
        for channel in EXTRA_CHANNELS:
            if channel.name in ("turn", "interval"):
                high[_extra(channel.name)] = LIMIT / channel.scale
    return high


def _extra(name: str) -> int:
    """Index of a feature of `EXTRA_CHANNELS` in the layout "full"."""
    first = FEATURE_SIZE["full"] - len(engine.extra_features(bytes(RECORD_SIZE)))
    return first + channel_starts(EXTRA_CHANNELS)[name]


def arranged(record: bytes, layout: str) -> Any:
    """The observation of one record in a layout."""
    if layout == "compact":
        return np.frombuffer(record, np.uint8).copy()
    if layout == "tactical":
        return np.array(features(record, layout), np.float32)
    cells = np.frombuffer(record, np.uint8, _PLANES_END).reshape(len(PLANE), CELLS).T.tobytes()
    each = [cells[start : start + len(PLANE)] for start in range(0, len(cells), len(PLANE))]
    player = np.array(engine.player_features(record), np.float32)
    programs = engine.owned_features(record)
    grid = np.concatenate([_row(cell) for cell in each])
    if layout == "dict":
        shaped = grid.reshape(SIZE, SIZE, CELL_FEATURES)
        return {"player": player, "programs": np.array(programs, np.int32), "grid": shaped}
    classic = [player, np.array(programs, np.float32), grid]
    if layout == "classic":
        return np.concatenate(classic)
    extra = [_extra_row(cell) for cell in each]
    return np.concatenate([*classic, *extra, np.array(engine.extra_features(record), np.float32)])


@lru_cache(_ROWS_KEPT)
def _row(cell: bytes) -> Floats:
    return np.array(engine.cell_features(CellBytes(*cell)), np.float32)


@lru_cache(_ROWS_KEPT)
def _extra_row(cell: bytes) -> Floats:
    return np.array(engine.extra_cell_features(CellBytes(*cell)), np.float32)


def split(classic: Floats) -> dict[str, Any]:
    """The layout "dict" of features float32[..., 1545] in the layout "classic"."""
    batch = classic.shape[:-1]
    grid = classic[..., _FIRST_CELL:CLASSIC_SIZE]
    return {
        "player": classic[..., :PLAYER_FEATURES],
        "programs": classic[..., PLAYER_FEATURES:_FIRST_CELL].astype(np.int32),
        "grid": grid.reshape(*batch, SIZE, SIZE, CELL_FEATURES),
    }
