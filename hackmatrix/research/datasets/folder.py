"""A data set is a folder: facts, shards of whole games, and the manifest with their checksums.

A game is its number, its actions and its rewards; everything else follows from the data set's seed
by playing it again. A shard is an `.npz` with the arrays of `Shard`, readable by NumPy alone. The
folder gets its name only after all of it is on disk, so there is never half a data set.
"""

import contextlib
import glob
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import PARTIAL, write_atomically
from hackmatrix.core.manifest import DamagedError, check_manifest, write_manifest
from hackmatrix.environments.registry import check_code, environment_id
from hackmatrix.learning.settings.config import MAX_SEED
from hackmatrix.research.datasets.shard import Shard, damage_error, read_shard

FORMAT = 1
FACTS = "data.json"
MAX_STEPS = 100_000  # of a game
_LONGEST = 4096  # characters of a name; that of an agent may be a path


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
