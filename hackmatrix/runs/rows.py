"""The rows of metrics of a run, as lines of JSON in its metrics.jsonl."""

import errno
import json
import math
import os
import threading
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from hackmatrix.storage.files import open_no_link, sync

METRICS = "metrics.jsonl"
_MOST = 2**63  # of a whole number in a row

Row = dict[str, Any]


def read_metrics(run: Path) -> Iterator[Row]:
    """The rows of a run's metrics.jsonl, without lines that were truncated or are no rows."""
    path = run / METRICS
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if (row := parse_row(line)) is not None:
                yield row


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
        self._path = run / METRICS
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()

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
            raise OSError(error.errno, f"{METRICS}: {error.strerror or error}") from error

    def _append_waiting(self) -> None:
        if self._waiting:
            _append(self._path, b"".join(self._waiting))
            self._waiting.clear()


def _line_of(row: Mapping[str, Any]) -> bytes:
    """The row as a line, without values that are None; NaN becomes null."""
    return json.dumps(_recorded(row)).encode() + b"\n"


def _append(path: Path, lines: bytes) -> None:
    """Appends all of these lines to a file, or nothing.

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


def _ends_a_line(file: FileIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _recorded(row: Mapping[str, Any]) -> Row:
    """The row with values that JSON can represent."""
    return {name: _finite(value) for name, value in row.items() if value is not None}


def _finite(value: Any) -> Any:
    if isinstance(value, list):  # rows of agents, or names of alarms
        return [_recorded(each) if isinstance(each, Mapping) else each for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
