"""A data set is a folder: facts, shards of whole games, and the manifest with their checksums.

A game is its number, its actions and its rewards; everything else follows from the data set's seed
by playing it again. A shard is an `.npz` with the arrays of `Shard`, readable by NumPy alone. The
folder gets its name only after all of it is on disk, so there is never half a data set.
"""

import contextlib
import glob
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import (
    PARTIAL,
    DamagedError,
    check_manifest,
    write_atomically,
    write_manifest,
)
from hackmatrix.environments.registry import check_code, environment_id
from hackmatrix.learning.settings.config import MAX_SEED

MAX_SHARD = 2**28  # bytes of the arrays
_DTYPES = {
    "lengths": np.int32,
    "terminated": np.bool_,
    "finals": np.uint32,
    "actions": np.uint8,
    "rewards": np.float32,
}
FORMAT = 1
FACTS = "data.json"
MAX_STEPS = 100_000  # of a game
_LONGEST = 4096  # characters of a name; that of an agent may be a path


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


@dataclass(frozen=True)
class DatasetFacts:
    """Facts about the games, as JSON beside them."""

    environment: str  # id
    agent: str  # as it was named
    seed: int  # of the games, see `research/evaluation/games.py`
    games: int  # the numbers 0 .. games - 1
    max_steps: int  # actions after which a game was cut off
    greedy: bool  # whether a network took its most probable action
    search: int | None  # simulations of a search before each action
    steps: int  # actions in all games
    version: str  # of this package
    format: int = FORMAT


class Writer:
    """Writes the shards of a new data set, in the order of their games."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.games = self.steps = 0

    def add(self, shard: Shard) -> None:
        """Writes a shard."""
        # The manifest waits until it is on disk.
        (self._folder / _shard_name(shard.first)).write_bytes(shard.as_npz())
        self.games += len(shard.lengths)
        self.steps += len(shard.actions)

    def add_facts(self, facts: DatasetFacts) -> None:
        """Writes the facts, after all shards."""
        text = json.dumps(asdict(facts), indent=1) + "\n"
        write_atomically(self._folder / FACTS, text.encode())


def check_new(path: Path) -> None:
    """Raises `UserError` if a data set can't get this name."""
    if not path.name:
        raise UserError(f"{path} is the current folder: name a new one")
    if path.is_dir() and not any(path.iterdir()):
        return
    if os.path.lexists(path):
        raise UserError(f"{path} is there already: name a new folder")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")


@contextlib.contextmanager
def new_data_set(path: Path) -> Iterator[Writer]:
    """A writer whose folder gets its name at the end of the context, if nothing is raised.

    Raises:
        UserError: there is something of this name.
        OSError: it can't be written; nothing of it is left. What a kill leaves is removed when
            another data set gets this name.
    """
    check_new(path)
    _remove_leftovers(path)
    partial = path.with_name(f"{PARTIAL}{path.name}-{os.getpid()}")
    partial.mkdir()
    lock = _lock(partial)
    try:
        yield Writer(partial)
        write_manifest(partial)
        check_new(path)
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _remove_leftovers(path: Path) -> None:
    """Removes what is left of recordings for this name whose processes were killed."""
    for partial in path.parent.glob(f"{PARTIAL}{glob.escape(path.name)}-*"):
        if partial.name.rpartition("-")[2].isdecimal() and (lock := _lock(partial)) is not None:
            shutil.rmtree(partial, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Locks a folder as long as this process lives and leaves the returned file open.

    None if another process has locked it, or folders can't be locked here.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


class DataSet(NamedTuple):
    """A data set whose files match their checksums."""

    path: Path
    facts: DatasetFacts
    firsts: tuple[int, ...]  # the first game of each shard

    def shards(self) -> Iterator[Shard]:
        """The shards one after the other; one of them is in memory.

        Raises:
            DamagedError: one holds something else than its games.
        """
        ends = (*self.firsts[1:], self.facts.games)
        steps = 0
        for first, end in zip(self.firsts, ends, strict=True):
            shard = read_shard(
                self.path / _shard_name(first), first, end - first, self.facts.max_steps
            )
            steps += len(shard.actions)
            yield shard
        if steps != self.facts.steps:
            raise damage_error(self.path, f"holds {steps:,} steps, not {self.facts.steps:,}")

    def first(self, games: int, steps: int) -> Iterator[Shard]:
        """Shards with the first games, at most so many and with so many steps, at least one game.

        Raises:
            DamagedError: see `shards`.
        """
        for shard in self.shards():
            fitting = int(np.searchsorted(np.cumsum(shard.lengths), steps, "right"))
            chosen = max(min(games, fitting), 1 if shard.first == 0 else 0)
            if chosen:
                yield shard.head(chosen)
            if chosen < len(shard.lengths):
                return
            games, steps = games - chosen, steps - len(shard.actions)


def open_data_set(path: Path) -> DataSet:
    """Reads the facts of a data set and checks the checksums of its files.

    Raises:
        UserError: there is none.
        DamagedError: a file is missing, damaged or unexpected; the message names it.
    """
    if not (path / FACTS).is_file():
        raise UserError(f"{path}: is no data set; `hackmatrix data record` makes one")
    check_manifest(path)
    facts = _read_facts(path)
    names = sorted(each.name for each in path.glob("games-*.npz"))
    firsts = tuple(int(name[6:-4]) for name in names if name[6:-4].isdecimal())
    if not firsts or names != [_shard_name(first) for first in firsts]:
        raise damage_error(path, "has no shards of games, or others")
    if firsts[0] != 0 or firsts[-1] >= facts.games:
        raise damage_error(path, f"its shards do not begin at game 0, or go beyond {facts.games:,}")
    return DataSet(path, facts, firsts)


def environment_of(data: DataSet, own: str | None) -> str:
    """The environment of a data set.

    Args:
        data: the data set.
        own: the environment that the user names; code of one's own is run for no file alone.

    Raises:
        UserError: there is no such environment, or the user must name it.
    """
    name = data.facts.environment
    if own is not None and environment_id(own) != name:
        raise UserError(f"{data.path}: its games are of {name}, not of {environment_id(own)}")
    check_code(name, own, f"{data.path}: its games are of")
    return environment_id(name)


def _shard_name(first: int) -> str:
    return f"games-{first:010d}.npz"


def _read_facts(path: Path) -> DatasetFacts:
    try:
        found = json.loads((path / FACTS).read_text(encoding="utf-8"))
        known = {field.name for field in fields(DatasetFacts)}
        if not isinstance(found, dict) or found.get("format") != FORMAT or set(found) != known:
            raise damage_error(path, f"{FACTS} does not describe a data set in format {FORMAT}")
        facts = DatasetFacts(**found)
    except DamagedError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise damage_error(path, f"{FACTS} can't be read ({error})") from None
    for name, least, most in (
        ("seed", 0, MAX_SEED),
        ("games", 1, 2**31 - 1),
        ("max_steps", 1, MAX_STEPS),
        ("steps", 1, 2**53),
    ):
        value = getattr(facts, name)
        if type(value) is not int or not least <= value <= most:
            raise damage_error(path, f"{FACTS} says {name} {value!r:.40}")
    for text in (facts.environment, facts.agent):
        if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST:
            raise damage_error(path, f"{FACTS} names no environment or agent")
    return facts
