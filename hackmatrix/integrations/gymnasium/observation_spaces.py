"""The layouts of observations: their spaces, and how they are made from a compact record."""

from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hackmatrix.environments.hackmatrix.observations import (
    COMPACT,
    FIRST_CELL,
    OBSERVATIONS,
    PLANES,
    SHAPES,
    bounds_of,
    check_observation,
    planes,
)
from hackmatrix.game.engine import observation as engine
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.board import CELLS, SIZE
from hackmatrix.game.rules.observation import (
    CELL_FEATURES,
    CLASSIC_SIZE,
    PLANE,
    PLAYER_FEATURES,
    CellBytes,
)
from hackmatrix.game.rules.programs import PROGRAMS

LAYOUTS = ("dict", *OBSERVATIONS)
Floats = NDArray[np.float32]

_PLANES_END = len(PLANE) * CELLS
_ROWS_KEPT = 16_384


def space_of(layout: str) -> spaces.Space[Any]:
    """The space of a layout's observations.

    `dict`: `player` float32[10], `programs` int32[23] and `grid` float32[6, 6, 42], as the
    original's. The others are those of `hackmatrix.make`: `classic`, the same numbers as
    float32[1545]; `full`: float32[1946]; `tactical`: float32[432]; `planes`: float32[6, 6, 127];
    `compact`: uint8[RECORD_SIZE], the record of `rules.observation`.

    The bounds of `dict` are those of the original, 0 and 1, so that models cross both ways; as
    there, more than 10 data siphons or 3 of attack go past them.

    Raises:
        UserError: there is no such layout.
    """
    check_observation(layout, LAYOUTS)
    if layout == "dict":
        return spaces.Dict(
            {
                "player": spaces.Box(0, 1, (PLAYER_FEATURES,), np.float32),
                "programs": spaces.Box(0, 1, (len(PROGRAMS),), np.int32),
                "grid": spaces.Box(0, 1, (SIZE, SIZE, CELL_FEATURES), np.float32),
            }
        )
    low, high = bounds_of(layout)
    low, high = (np.broadcast_to(bound, SHAPES[layout]).copy() for bound in (low, high))
    return spaces.Box(low, high, dtype=low.dtype.type)


def layout_of(space: spaces.Space[Any]) -> str | None:
    """The layout whose observations have the shapes of a space, whatever its bounds, or None."""
    return next((layout for layout in LAYOUTS if _shapes(space_of(layout)) == _shapes(space)), None)


def _shapes(space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: each.shape for name, each in space.items()}
    return space.shape


def arrange_record(record: bytes, layout: str) -> Any:
    """The observation of one record in a layout."""
    if layout == COMPACT:
        return np.frombuffer(record, np.uint8).copy()
    if layout == "tactical":
        return np.array(features(record, layout), np.float32)
    cells = np.frombuffer(record, np.uint8, _PLANES_END).reshape(len(PLANE), CELLS).T.tobytes()
    cells_of_record = [
        cells[start : start + len(PLANE)] for start in range(0, len(cells), len(PLANE))
    ]
    player = np.array(engine.player_features(record), np.float32)
    programs = engine.owned_features(record)
    grid = np.concatenate([_row(cell) for cell in cells_of_record])
    if layout == "dict":
        shaped = grid.reshape(SIZE, SIZE, CELL_FEATURES)
        return {"player": player, "programs": np.array(programs, np.int32), "grid": shaped}
    classic = [player, np.array(programs, np.float32), grid]
    if layout == "classic":
        return np.concatenate(classic)
    extra = [_extra_row(cell) for cell in cells_of_record]
    last = np.array(engine.extra_features(record), np.float32)
    full = np.concatenate([*classic, *extra, last])
    return planes(full) if layout == PLANES else full


@lru_cache(_ROWS_KEPT)
def _row(cell: bytes) -> Floats:
    return np.array(engine.cell_features(CellBytes(*cell)), np.float32)


@lru_cache(_ROWS_KEPT)
def _extra_row(cell: bytes) -> Floats:
    return np.array(engine.extra_cell_features(CellBytes(*cell)), np.float32)


def split(classic: Floats) -> dict[str, Any]:
    """The layout "dict" of features float32[..., 1545] in the layout "classic"."""
    batch = classic.shape[:-1]
    grid = classic[..., FIRST_CELL:CLASSIC_SIZE]
    return {
        "player": classic[..., :PLAYER_FEATURES],
        "programs": classic[..., PLAYER_FEATURES:FIRST_CELL].astype(np.int32),
        "grid": grid.reshape(*batch, SIZE, SIZE, CELL_FEATURES),
    }
