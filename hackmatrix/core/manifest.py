"""The manifest of a folder: size and SHA-256 of each of its files.

Orbax restores arrays whose bytes have changed without a warning; the manifest finds every change.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import sync

NAME = "manifest.json"


class DamagedError(UserError):
    """A folder does not match its manifest."""


def write_manifest(folder: Path) -> None:
    """Writes the manifest of all files in a folder, and waits until all of them are on disk."""
    files = {}
    for path in _files(folder):
        sync(path)
        files[path.relative_to(folder).as_posix()] = _entry(path)
    manifest = folder / NAME
    manifest.write_text(_text(files), encoding="utf-8")
    sync(manifest)
    sync(folder)


def check_manifest(folder: Path) -> None:
    """Compares a folder with its manifest.

    Raises:
        DamagedError: a file is missing, changed, truncated or unexpected; the message names it.
    """
    expected = _read(folder)
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
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


def names_in(content: bytes) -> list[str]:
    """The files that the content of a manifest lists; none if it was changed."""
    try:
        files = json.loads(content)
    except (ValueError, RecursionError):
        return []
    return list(files) if isinstance(files, dict) else []


def _read(folder: Path) -> dict[str, tuple[int, str]]:
    path = folder / NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DamagedError(f"{folder} is damaged: the file {NAME} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedError(f"{folder} is damaged: {NAME} can't be read ({error})") from None
    try:
        files = {name: (size, checksum) for name, (size, checksum) in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        files = None
    if files is None or _text(files) != text or not all(map(_is_entry, files.values())):
        raise DamagedError(f"{folder} is damaged: the file {NAME} was changed")
    return files


def _is_entry(entry: tuple[Any, Any]) -> bool:
    size, checksum = entry
    return type(size) is int and isinstance(checksum, str)


def _text(files: dict[str, tuple[int, str]]) -> str:
    return json.dumps(files, indent=1) + "\n"


def _entry(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size, checksum


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / NAME)
