"""Files: written atomically, and the manifest of a folder with the SHA-256 of each.

After a kill at any moment a file is either the old or the new one. Orbax restores arrays whose
bytes have changed without a warning; the manifest finds every change.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError

_ABANDONED = 600.0  # seconds after which nobody is writing a partial file any more
PARTIAL = ".saving-"  # before the names of files that are not complete; a kill may leave them
MANIFEST = "manifest.json"


def write_atomically(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes or replaces a file atomically.

    Args:
        path: the file.
        content: all that it will hold.
        mode: permissions of a new file, less those that the user's umask takes away.

    Raises:
        OSError: it can't be written; an older file is left unchanged.
    """
    with _stage(path, content, mode) as partial:
        partial.replace(path)
    sync(path.parent)


def check_writable(path: Path, name: str) -> None:
    """Checks that a file can be written, before the work whose results it will hold.

    What a kill left of an earlier try is removed, if it is so old that nobody writes it any more.

    Args:
        path: the file.
        name: begins the message, such as "--plot a.svg".

    Raises:
        UserError: it can't be written.
    """
    if not path.parent.is_dir():
        raise UserError(f"{name}: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(prefix=PARTIAL, dir=path.parent):
            pass
    except OSError:
        can_write = False
    else:
        can_write = not path.is_dir()
    if not can_write:
        raise UserError(f"{name}: can't be written there")
    for partial in path.parent.glob(f"{PARTIAL}{glob.escape(path.name)}-*"):
        with contextlib.suppress(OSError):
            if time.time() - partial.stat().st_mtime > _ABANDONED:
                partial.unlink()


def write_pair(data: Path, content: bytes, facts: Path, about: bytes) -> None:
    """Writes or replaces two files of one folder that belong together.

    A kill at any moment leaves both old files, both new ones, or the data alone: never the facts of
    other data.

    Args:
        data: the file that can stand alone.
        content: of the data.
        facts: the file about the data.
        about: its content.

    Raises:
        OSError: one can't be written; older files are left unchanged.
    """
    with _stage(data, content) as new_data, _stage(facts, about) as new_facts:
        facts.unlink(missing_ok=True)
        new_data.replace(data)
        new_facts.replace(facts)
    sync(data.parent)


def open_no_link(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """Like `os.open`, but never the file that a link leads to: who made the folder may have set it.

    Raises:
        OSError: the path is a link, or can't be opened.
    """
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), mode)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(
            error.errno, f"{path} is a link: no file elsewhere is opened for it"
        ) from None


def remove_partial(folder: Path) -> None:
    """Removes what kills during `write_atomically` left in a folder. No one may be writing."""
    for path in folder.glob(f"{PARTIAL}*"):
        if path.is_file():
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Waits until a file, or the entries of a folder, are on disk (fsync)."""
    if os.name == "nt" and path.is_dir():  # Windows can't open folders, nor needs to
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _stage(path: Path, content: bytes, mode: int = 0o666) -> Iterator[Path]:
    """The content in a complete file beside `path`, which the caller renames."""
    partial = path.with_name(f"{PARTIAL}{path.name}-{os.getpid()}")
    try:
        partial.unlink(missing_ok=True)  # a killed process of the same number left it
        with open(open_no_link(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield partial
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


class DamagedError(UserError):
    """A folder does not match its manifest."""


def write_manifest(folder: Path) -> None:
    """Writes the manifest of all files in a folder, and waits until all of them are on disk."""
    files = {}
    for path in _files_of(folder):
        sync(path)
        files[path.relative_to(folder).as_posix()] = _entry(path)
    manifest = folder / MANIFEST
    manifest.write_text(_manifest_text(files), encoding="utf-8")
    sync(manifest)
    sync(folder)


def check_manifest(folder: Path) -> None:
    """Compares a folder with its manifest.

    Raises:
        DamagedError: a file is missing, changed, truncated or unexpected; the message names it.
    """
    expected = _read_manifest(folder)
    found = {path.relative_to(folder).as_posix(): path for path in _files_of(folder)}
    for name in expected:
        if name not in found:
            raise DamagedError(f"{folder} is damaged: the file {name} is missing")
    for name, path in found.items():
        if name not in expected:
            raise DamagedError(f"{folder} is damaged: the file {name} does not belong there")
        size, checksum = _entry(path)
        if size != expected[name][0]:
            raise DamagedError(
                f"{folder} is damaged: the file {name} has {size:,} bytes, not "
                f"{expected[name][0]:,}"
            )
        if checksum != expected[name][1]:
            raise DamagedError(f"{folder} is damaged: the file {name} does not match its checksum")


def names_in_manifest(content: bytes) -> list[str]:
    """The files that the content of a manifest lists; none if it was changed."""
    try:
        files = json.loads(content)
    except (ValueError, RecursionError):
        return []
    return list(files) if isinstance(files, dict) else []


def _read_manifest(folder: Path) -> dict[str, tuple[int, str]]:
    path = folder / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DamagedError(f"{folder} is damaged: the file {MANIFEST} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedError(f"{folder} is damaged: {MANIFEST} can't be read ({error})") from None
    try:
        files = {name: (size, checksum) for name, (size, checksum) in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        files = None
    if files is None or _manifest_text(files) != text or not all(map(_is_entry, files.values())):
        raise DamagedError(f"{folder} is damaged: the file {MANIFEST} was changed")
    return files


def _is_entry(entry: tuple[Any, Any]) -> bool:
    size, checksum = entry
    return type(size) is int and isinstance(checksum, str)


def _manifest_text(files: dict[str, tuple[int, str]]) -> str:
    return json.dumps(files, indent=1) + "\n"


def _entry(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size, checksum


def _files_of(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST
    )
