"""Follows a file of lines that another process appends to, cuts off or replaces."""

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

MOST_BYTES = 2**20  # of one reading, so that a long file is read in pieces
LONGEST_LINE = 2**26  # bytes; a row of a thousand agents has a few million
_REMEMBERED = 256  # bytes before the place up to which the file was read


class News(NamedTuple):
    """The result of one reading."""

    anew: bool  # the file was cut off or replaced: the lines of earlier readings no longer count
    lines: list[bytes]  # complete ones, without their ends
    unread: int  # bytes that the next reading will find


class Follower:
    """Remembers up to which place a file was read; the file need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._before = b""  # what stands before that place
        self._identity: tuple[int, int] | None = None

    def read(self) -> News:
        """Reads complete lines from the place of the last reading on, or from the beginning.

        A last line without its end waits until it is complete. A file that is missing has no news.

        Raises:
            OSError: the file can't be read.
        """
        try:
            if self._path.exists() and not self._path.is_file():
                return News(False, [], 0)  # a pipe would keep its reader waiting
            file = self._path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return News(False, [], 0)
        with file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            anew = self._identity is not None and not self._continues(file, identity)
            if anew:
                self._offset, self._before = 0, b""
            self._identity = identity
            file.seek(self._offset)
            data = file.read(MOST_BYTES)
            if b"\n" not in data:
                data += file.readline(LONGEST_LINE)
        is_endless = len(data) > LONGEST_LINE and b"\n" not in data  # no row of metrics
        end = len(data) if is_endless else data.rfind(b"\n") + 1
        self._offset += end
        self._before = (self._before + data[:end])[-_REMEMBERED:]
        unread = max(0, status.st_size - self._offset) if end else 0
        return News(anew, data[:end].splitlines(), unread)

    def _continues(self, file: BinaryIO, identity: tuple[int, int]) -> bool:
        """Whether the file still begins with what was read of it, as far as one can tell."""
        if identity != self._identity:
            return False
        file.seek(self._offset - len(self._before))
        return file.read(len(self._before)) == self._before
