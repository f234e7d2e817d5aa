"""The rows of metrics of a run, as lines of JSON in its metrics.jsonl."""

import errno
import json
import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from hackmatrix.core.files import open_no_link, sync, write_atomically

METRICS_FILE = "metrics.jsonl"
_MOST = 2**63  # of a whole number in a row

Row = dict[str, Any]


def read_metrics(run: Path) -> Iterator[Row]:
    """The rows of a run's metrics.jsonl, without lines that were truncated or are no rows."""
    path = run / METRICS_FILE
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if (row := parse_row(line)) is not None:
                yield row


def rows_in(content: bytes) -> list[Row]:
    """The rows in the content of a metrics.jsonl, as those of `read_metrics`."""
    return [row for line in content.splitlines() if (row := parse_row(line)) is not None]


def length_until(content: bytes, update: int) -> int:
    """The bytes up to the end of the last row that is of this update or an earlier one."""
    return next((end for end, row in _from_the_end(content) if row["update"] <= update), 0)


def last_update(content: bytes) -> int:
    """The update of the last row; -1 if there is none."""
    return next((row["update"] for _, row in _from_the_end(content)), -1)


def _from_the_end(content: bytes) -> Iterator[tuple[int, Row]]:
    """The rows, last one first, each with the place in bytes where its line ends."""
    end = len(content)
    while end:
        begin = content.rfind(b"\n", 0, end - 1) + 1
        if (row := parse_row(content[begin:end])) is not None:
            yield end, row
        end = begin


def parse_row(line: str | bytes) -> Row | None:
    """The row in a line of metrics.jsonl; None if it was truncated or is no row."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if _is_row(row) and type(row.get("update")) is int else None


def _is_row(row: Any) -> bool:
    """Whether a value is a row of metrics: numbers, and the lists of alarms and agents."""
    if not isinstance(row, dict):
        return False
    lists = {"alarms": lambda each: isinstance(each, str), "agents": _is_row_of_agent}
    return all(
        isinstance(value, list) and all(map(lists[name], value))
        if name in lists
        else _is_number(value)
        for name, value in row.items()
    )


def _is_row_of_agent(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and type(row.get("seed")) is int
        and all(map(_is_number, row.values()))
    )


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a float can hold, or null."""
    return value is None or type(value) is float or (type(value) is int and abs(value) < _MOST)


class MetricsFile:
    """Appends rows to a run's metrics.jsonl; those that a full disk does not take wait.

    The thread that trains and the one that saves may use it at the same time.
    """

    def __init__(self, run: Path) -> None:
        """Takes the run's folder; writes nothing."""
        self._path = run / METRICS_FILE
        self._size = _size_of(self._path)  # bytes that were there when it was last written
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()

    def is_whole(self) -> bool:
        """Whether the file still holds the rows that it had; one that had none need not exist."""
        expected = self._size  # before the look: it may grow meanwhile
        return _size_of(self._path) >= expected

    def replace(self, rows: Iterable[Row]) -> None:
        """Replaces all rows."""
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        with self._lock:
            write_atomically(self._path, content)
            self._size = len(content)

    def add(self, row: Mapping[str, Any]) -> None:
        """Appends a row, after those that wait; see `RunFolder.add_metrics`."""
        with self._lock:
            self._waiting.append(_line_of(row))
            self._append_waiting()

    def settle(self) -> None:
        """Appends the rows that wait, and returns when all are on disk.

        Raises:
            OSError: they can't be written; they go on waiting.
        """
        try:
            with self._lock:
                self._append_waiting()
            if self._path.exists():
                sync(self._path)
        except OSError as error:
            raise OSError(error.errno, f"{METRICS_FILE}: {error.strerror or error}") from error

    def _append_waiting(self) -> None:
        if not self.is_whole():  # never a file anew without the rows that were in it
            raise OSError(errno.ENOENT, "rows that were written are gone")
        if self._waiting:
            self._size = _append(self._path, b"".join(self._waiting))
            self._waiting.clear()


def _line_of(row: Mapping[str, Any]) -> bytes:
    """The row as a line, without values that are None; NaN becomes null."""
    return json.dumps(_to_json(row)).encode() + b"\n"


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _append(path: Path, lines: bytes) -> int:
    """Appends all of these lines to a file, or nothing; returns the file's size in bytes.

    Raises:
        OSError: they can't be written.
    """
    with open(path, "ab+", buffering=0, opener=open_no_link) as file:
        size = file.seek(0, os.SEEK_END)
        if size and not _ends_a_line(file):  # a kill took the end of the last line
            lines = b"\n" + lines
        try:
            if file.write(lines) < len(lines):  # a full disk takes the beginning
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            file.truncate(size)
            raise
    return size + len(lines)


def _ends_a_line(file: FileIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _to_json(row: Mapping[str, Any]) -> Row:
    """The row with values that JSON can represent."""
    return {name: _finite(value) for name, value in row.items() if value is not None}


def _finite(value: Any) -> Any:
    if isinstance(value, list):  # rows of agents, or names of alarms
        return [_to_json(each) if isinstance(each, Mapping) else each for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
