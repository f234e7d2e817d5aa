"""The folder of compiled programs: which it is, who may use it, how it stays small.

JAX writes its programs there itself (`compilation_cache.py`), `game/native/cuda.py` the kernels of
the native engine. A user may have chosen a folder with other files in it, so a file belongs to the
cache only if it has a name that one of the two gives.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hackmatrix.core.files import PARTIAL

VARIABLE = "JAX_COMPILATION_CACHE_DIR"  # JAX's own: names another folder, or none if empty
MOST_BYTES = 2**30

_HASH = "[0-9a-f]{64}"
_KERNELS = re.compile(rf"{_HASH}-hackmatrix")
_COMPILED = re.compile(rf".+-{_HASH}-(cache|atime)")
_UNFINISHED = re.compile(rf"{re.escape(PARTIAL)}{_HASH}-hackmatrix-\d+")  # its process was killed
_OF_XLA = "xla_gpu_per_fusion_autotune_cache_dir"  # XLA's own, beside JAX's


class CacheEntry(NamedTuple):
    """A file of the cache."""

    path: Path
    size: int  # bytes
    used: float  # seconds since the epoch, as far as the file system records it
    is_kernel: bool


def kernel_path(folder: Path, key: str) -> Path:
    """The file of compiled kernels; `key` is a SHA-256 in hexadecimal."""
    return folder / f"{key}-hackmatrix"


def default_folder() -> Path | None:
    """The folder in the user's home; None if the user has no home."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))  # ignored unless absolute, as XDG wants it
    try:
        home = named if named.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return home / "hackmatrix" / "jax" if home.is_absolute() else None


def local(name: str) -> Path | None:
    """The folder that a setting names; None if it names none, or one on another machine.

    A relative path names none: what it leads to depends on the current folder.
    """
    return Path(name) if Path(name).is_absolute() else None


def make(folder: Path) -> bool:
    """Makes the folder if there is none; returns whether the user's programs may be kept there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return is_trusted(folder) and os.access(folder, os.W_OK)
    except OSError:
        return False


def is_trusted(folder: Path) -> bool:
    """Whether a folder is the user's own, and nobody else can put another one in its place.

    So no folder above it may be one that others can change, nor a link that others have made.

    Raises:
        OSError: it is not there.
    """
    if os.name == "nt":
        return True
    real = Path(os.path.realpath(folder, strict=True))
    above = {*folder.parents, *real.parents, folder}
    return belongs_to_user(real.lstat()) and all(_is_safe(each.lstat()) for each in above)


def _is_safe(file: os.stat_result) -> bool:
    """Whether only the user and root can change what lies at a path, or, as in /tmp, remove it."""
    if file.st_uid not in (0, os.getuid()):
        return False
    writers = 0o002 if file.st_gid in (0, os.getgid()) else 0o022  # a group of the user's own
    is_open = file.st_mode & writers and not file.st_mode & stat.S_ISVTX
    return stat.S_ISLNK(file.st_mode) or not is_open


def belongs_to_user(file: os.stat_result) -> bool:
    """Whether the user owns a file or folder, and nobody else may write to it."""
    if os.name == "nt":  # whose folders in a user's home are the user's alone
        return True
    return file.st_uid == os.getuid() and not file.st_mode & 0o022


def entries(folder: Path) -> list[CacheEntry]:
    """The files of the cache in a folder; none if it can't be read."""
    cache_entries = []
    for path in _files(folder):
        try:
            file = path.stat(follow_symlinks=False)
        except OSError:  # another process has removed it
            continue
        used, is_kernel = max(file.st_atime, file.st_mtime), _KERNELS.fullmatch(path.name)
        cache_entries.append(CacheEntry(path, file.st_size, used, is_kernel is not None))
    return cache_entries


def remove(unwanted: Iterable[CacheEntry]) -> int:
    """Removes files of the cache; returns the number of bytes freed."""
    freed = 0
    for entry in unwanted:
        try:
            entry.path.unlink()
        except OSError:
            continue
        freed += entry.size
    return freed


def least_recently_used(cache_entries: Iterable[CacheEntry], most_bytes: int) -> list[CacheEntry]:
    """The entries to remove, so that those used last stay, of `most_bytes` at most."""
    left, unwanted = most_bytes, []
    for entry in sorted(cache_entries, key=lambda entry: entry.used, reverse=True):
        left -= entry.size
        if left < 0:
            unwanted.append(entry)
    return unwanted


def _files(folder: Path) -> Iterator[Path]:
    patterns = _KERNELS, _COMPILED, _UNFINISHED
    try:
        for file in os.scandir(folder):
            if file.is_file(follow_symlinks=False):
                if any(pattern.fullmatch(file.name) for pattern in patterns):
                    yield Path(file.path)
            elif file.name == _OF_XLA and file.is_dir(follow_symlinks=False):
                yield from (path for path in Path(file.path).iterdir() if path.is_file())
    except OSError:
        return
