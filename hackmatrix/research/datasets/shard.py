"""A shard of a data set: some of its games as arrays, in an `.npz` that NumPy alone can read."""

import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.manifest import DamagedError

MAX_SHARD = 2**28  # bytes of the arrays


class Shard(NamedTuple):
    """G games with consecutive numbers, and their S steps, one game after the other."""

    first: int  # number of the first game
    lengths: NDArray[np.int32]  # [G], at least 1
    terminated: NDArray[np.bool_]  # [G], whether the game itself ended; else it was cut off
    finals: NDArray[np.uint32]  # [G], CRC-32 of the last observation
    actions: NDArray[np.uint8]  # [S]
    rewards: NDArray[np.float32]  # [S]

    @property
    def starts(self) -> NDArray[np.int64]:
        """The index of each game's first step, int64[G]."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    def as_npz(self) -> bytes:
        """The content of its file."""
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _DTYPES}
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

    def head(self, games: int) -> "Shard":
        """The first games."""
        steps = int(self.lengths[:games].sum())
        return Shard(
            self.first,
            self.lengths[:games],
            self.terminated[:games],
            self.finals[:games],
            self.actions[:steps],
            self.rewards[:steps],
        )

    def returns(self) -> NDArray[np.float64]:
        """The sum of each game's rewards, float64[G]."""
        sums: NDArray[np.float64] = np.add.reduceat(self.rewards, self.starts, dtype=np.float64)
        return sums


_DTYPES = {
    "lengths": np.int32,
    "terminated": np.bool_,
    "finals": np.uint32,
    "actions": np.uint8,
    "rewards": np.float32,
}


def read_shard(path: Path, first: int, games: int, max_steps: int) -> Shard:
    """Reads a shard that should hold so many games of at most so many steps.

    Raises:
        DamagedError: it holds something else.
    """
    arrays = _arrays(path)
    shard = Shard(first, **arrays)
    lengths = shard.lengths
    if not len(lengths) == len(shard.terminated) == len(shard.finals) == games:
        raise damage_error(path, f"holds {len(lengths):,} games, not {games:,}")
    if lengths.min() < 1 or lengths.max() > max_steps:
        raise damage_error(path, f"a game has {lengths.max():,} actions, or none")
    if not lengths.sum(dtype=np.int64) == len(shard.actions) == len(shard.rewards):
        raise damage_error(path, "the lengths of its games do not fit its actions and rewards")
    return shard


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a shard; what they would take in memory is looked at first."""
    try:
        with zipfile.ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > MAX_SHARD:
                raise damage_error(path, f"would take more than {MAX_SHARD:,} bytes of memory")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except DamagedError:
        raise
    except Exception as error:  # NumPy, its headers and zip files raise a dozen kinds
        reason = " ".join(str(error).split())[:200]
        raise damage_error(path, f"is no shard of games ({reason})") from None
    if set(arrays) != set(_DTYPES):
        raise damage_error(path, f"holds {', '.join(sorted(arrays))[:200]}, not a shard's arrays")
    for name, dtype in _DTYPES.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise damage_error(path, f"{name} is {arrays[name].dtype} {arrays[name].shape}")
    return arrays


def damage_error(path: Path, what: str) -> DamagedError:
    """The error of a file that was changed, or made to look like one of ours."""
    return DamagedError(f"{path} is damaged: {what}")
