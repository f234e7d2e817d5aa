"""The observations of HackMatrix by name: what `observation=` means wherever it is an argument.

Imports no JAX.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.game import native
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.board import CELLS, LIMIT, SIZE
from hackmatrix.game.rules.observation import (
    BYTE,
    CELL_CHANNELS,
    CELL_FEATURES,
    CLASSIC_SIZE,
    EXTRA_CELL_CHANNELS,
    EXTRA_CELL_FEATURES,
    EXTRA_CHANNELS,
    FEATURE_SIZE,
    FIELDS,
    PLANE,
    PLAYER_CHANNELS,
    PLAYER_FEATURES,
    RECORD_SIZE,
    SCALARS,
    Channel,
    channel_starts,
)
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.tactical import HIGH, LOW, SCALES

Array = NDArray[Any]

COMPACT, PLANES = "compact", "planes"
OBSERVATIONS = (COMPACT, *FEATURE_SIZE, PLANES)

FIRST_CELL = PLAYER_FEATURES + len(PROGRAMS)  # the features of cells begin here
_FIRST_EXTRA = CLASSIC_SIZE + CELLS * EXTRA_CELL_FEATURES  # the last ones of the whole game
_NUM_SCALARS = FIRST_CELL + FEATURE_SIZE["full"] - _FIRST_EXTRA
NUM_PLANES = CELL_FEATURES + EXTRA_CELL_FEATURES + 1 + _NUM_SCALARS
SHAPES: dict[str, tuple[int, ...]] = {
    COMPACT: (RECORD_SIZE,),
    **{layout: (size,) for layout, size in FEATURE_SIZE.items()},
    PLANES: (SIZE, SIZE, NUM_PLANES),
}


def check_observation(name: str, names: tuple[str, ...] = OBSERVATIONS) -> None:
    """Raises `UserError` if no observation has this name."""
    if name not in names:
        raise UserError(f"observation must be one of {', '.join(names)}, got {name!r}")


def layout_of(observation: str) -> str:
    """The layout of the features that an observation is made from."""
    return observation if observation in FEATURE_SIZE else "full"


def planes(full: Any) -> Any:
    """The observation "planes" of features in the layout "full", in NumPy or JAX.

    Args:
        full: float32[..., 1946].

    Returns:
        float32[..., 6, 6, 127]: of each cell its 42 features, its 10 further ones, 1 where the
        player is, and on every cell alike the 74 scalars of the whole game.
    """
    xp = full.__array_namespace__()
    batch, line = full.shape[:-1], xp.arange(SIZE)
    row, col = (xp.round(full[..., i] * (SIZE - 1))[..., None, None] for i in (0, 1))
    here = (line[:, None] == row) & (line == col)
    scalars = xp.concat([full[..., :FIRST_CELL], full[..., _FIRST_EXTRA:]], axis=-1)
    parts = [
        full[..., FIRST_CELL:CLASSIC_SIZE].reshape(*batch, SIZE, SIZE, CELL_FEATURES),
        full[..., CLASSIC_SIZE:_FIRST_EXTRA].reshape(*batch, SIZE, SIZE, EXTRA_CELL_FEATURES),
        here[..., None].astype(full.dtype),
        xp.broadcast_to(scalars[..., None, None, :], (*batch, SIZE, SIZE, _NUM_SCALARS)),
    ]
    return xp.concat(parts, axis=-1)


def records_of_features(full: Any) -> Any:
    """Compact records of features in the layout "full", in NumPy or JAX.

    They are those of the game but for what is capped in the features (credits and energy at 50,
    scheduled spawns 12 turns away), so that their features are the same.

    Args:
        full: float32[..., 1946].

    Returns:
        uint8[..., RECORD_SIZE].
    """
    xp = full.__array_namespace__()
    batch = full.shape[:-1]
    cells = {
        **_values_of(full[..., FIRST_CELL:CLASSIC_SIZE].reshape(*batch, CELLS, -1), CELL_CHANNELS),
        **_values_of(
            full[..., CLASSIC_SIZE:_FIRST_EXTRA].reshape(*batch, CELLS, -1), EXTRA_CELL_CHANNELS
        ),
    }
    cells["value"] = cells["points"] + xp.maximum(cells["program"] - 1, 0)
    game = {
        **_values_of(full[..., _FIRST_EXTRA:], EXTRA_CHANNELS),
        **_values_of(full, PLAYER_CHANNELS),  # where credits and energy are capped later
    }
    game["cell"] = game["row"] * SIZE + game["col"]
    game["next_task"] = xp.maximum(game["turn"] + game["until_task"], 0)
    owned = full[..., PLAYER_FEATURES:FIRST_CELL].astype(xp.int32)
    game["owned"] = xp.sum(owned << np.arange(len(PROGRAMS)), axis=-1)
    game["flags"] = sum(field.put(game[field.name]) for field in FIELDS if field.byte == "flags")
    planes = [
        sum(field.put(cells[field.name]) for field in FIELDS if field.byte == plane)
        for plane in PLANE
    ]
    size = {scalar.name: scalar.size for scalar in SCALARS}
    ends = [game[name][..., None] >> 8 * i & 255 for name in BYTE for i in range(size[name])]
    padding = xp.zeros((*batch, RECORD_SIZE - len(PLANE) * CELLS - len(ends)), xp.int32)
    return xp.concat([*planes, *ends, padding], axis=-1).astype(xp.uint8)


def _values_of(features: Any, channels: tuple[Channel, ...]) -> dict[str, Any]:
    """The values int32[...] of which channels made features [..., F], by their names."""
    xp = features.__array_namespace__()
    by_name = {}
    for channel, first in zip(channels, channel_starts(channels).values(), strict=True):
        if channel.size == 1:
            value = features[..., first] * channel.scale + channel.zero
        else:
            one_hot = features[..., first : first + channel.size]
            value = xp.sum(one_hot * np.arange(1, channel.size + 1), axis=-1)
        by_name[channel.name] = xp.round(value).astype(xp.int32)
    return by_name


def observations_of(records: Array, observation: str, *, threads: int = 1) -> Array:
    """The observations of N compact records, in NumPy.

    Args:
        records: uint8[N, RECORD_SIZE].
        observation: one of `OBSERVATIONS`.
        threads: how many share the work, where the native engine does it.
    """
    if observation == COMPACT:
        return records
    layout = layout_of(observation)
    if native.available:
        from hackmatrix.game.native import batch

        encoded = batch.features(records, layout, threads=threads)
    else:
        rows = [features(record.tobytes(), layout) for record in records]
        encoded = np.array(rows, np.float32).reshape(len(records), FEATURE_SIZE[layout])
    return planes(encoded) if observation == PLANES else encoded


def bounds_of(observation: str) -> tuple[Array, Array]:
    """The smallest and largest values along the last axis, float32 (compact: uint8) each."""
    if observation == COMPACT:
        return np.zeros(RECORD_SIZE, np.uint8), np.full(RECORD_SIZE, 255, np.uint8)
    if observation == PLANES:
        low, high = bounds_of("full")
        return _of_planes(low, 0), _of_planes(high, 1)
    if observation == "tactical":
        scales = np.array(SCALES, np.float32)
        low, high = (np.array(bound, np.float32) * scales for bound in (LOW, HIGH))
        return low, high
    low, high = np.zeros(FEATURE_SIZE[observation], np.float32), _highest(observation)
    if observation == "full":
        low[_FIRST_EXTRA + channel_starts(EXTRA_CHANNELS)["until_task"]] = -1
    return low, high


def _highest(layout: str) -> Array:
    """The largest value of each feature: 1, but for numbers that are not capped."""
    high = np.ones(FEATURE_SIZE[layout], np.float32)
    player = channel_starts(PLAYER_CHANNELS)
    for channel in PLAYER_CHANNELS:
        if channel.name in ("siphons", "attack"):
            high[player[channel.name]] = (LIMIT - channel.zero) / channel.scale
    if layout == "full":
        extra = channel_starts(EXTRA_CHANNELS)
        for channel in EXTRA_CHANNELS:
            if channel.name in ("turn", "interval"):
                high[_FIRST_EXTRA + extra[channel.name]] = LIMIT / channel.scale
    return high


def _of_planes(full: Array, here: int) -> Array:
    """A bound of each plane, from those of the features; cells have the same ones everywhere."""
    of_cell = full[FIRST_CELL:][:CELL_FEATURES], full[CLASSIC_SIZE:][:EXTRA_CELL_FEATURES]
    is_here = np.array([here], full.dtype)
    return np.concatenate([*of_cell, is_here, full[:FIRST_CELL], full[_FIRST_EXTRA:]])
