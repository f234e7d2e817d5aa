"""The rows of metrics of one agent as columns of numbers."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

import numpy as np

_LARGEST = 1e100  # of a value: squares of larger ones, and their sums, are not finite

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def is_finite(value: float | None) -> TypeGuard[float]:
    """Whether one can compute with a value of a row, where null stands for NaN and infinity."""
    return value is not None and abs(value) < _LARGEST


class MetricColumns:
    """A row for each update, in rising order, and a column for each metric.

    In a column NaN stands for a value that was not measured, infinity for one that was not finite,
    or is too large to compute with.
    """

    def __init__(self) -> None:
        self.updates = array("q")
        self._columns: dict[str, array[float]] = {}

    def __len__(self) -> int:
        return len(self.updates)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def add(self, update: int, values: Mapping[str, float | None]) -> None:
        """Adds values to the row of an update; None for a value that was not finite.

        If there are rows of later updates, the run went back and started again from here: they are
        removed.
        """
        if self.updates and update < self.updates[-1]:
            self._cut(bisect_left(self.updates, update))
        if not self.updates or update > self.updates[-1]:
            self.updates.append(update)
            for column in self._columns.values():
                column.append(math.nan)
        for name, value in values.items():
            column = self._columns.get(name) or self._new_column(name)
            column[-1] = value if is_finite(value) else math.inf

    def column(self, name: str) -> FloatArray:
        """A metric's values, float64[rows]; all NaN for an unknown one."""
        if name not in self._columns:
            return np.full(len(self), np.nan)
        return np.array(self._columns[name], np.float64)

    def last(self, name: str) -> tuple[int, float] | None:
        """The last value that was measured and its update; None without one."""
        column = self._columns.get(name, ())
        for row in range(len(column) - 1, -1, -1):
            if not math.isnan(column[row]):
                return self.updates[row], column[row]
        return None

    def _new_column(self, name: str) -> "array[float]":
        self._columns[name] = array("d", [math.nan]) * len(self)
        return self._columns[name]

    def _cut(self, rows: int) -> None:
        del self.updates[rows:]
        for column in self._columns.values():
            del column[rows:]
