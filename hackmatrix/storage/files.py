"""Atomic file writes: after a kill at any moment a file is either the old or the new one."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes or replaces a file atomically.

    Args:
        path: the file.
        content: all that it will hold.
        mode: permissions of a new file, less those that the user's umask takes away.

    Raises:
        OSError: it can't be written; an older file is left unchanged.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(partial, "wb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Waits until a file, or the entries of a folder, are on disk (fsync)."""
    if os.name == "nt" and path.is_dir():  # Windows can't open folders, nor needs to
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
