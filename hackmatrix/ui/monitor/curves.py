"""From rows of metrics to what is drawn: smoothing, mean and interval over seeds, thinning, range.

Smoothing sees every row, and only what is drawn is thinned: to the extremes within each pixel.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from hackmatrix.core import student_t

# --- The rows of metrics of one agent as columns of numbers ---------------------------------------


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


# From rows of metrics to what is drawn: smoothing, mean and interval over seeds, thinning, range.


_NEGLIGIBLE = 1e-9  # weight of a row
_SPIKE = 5  # rows of the running median that spikes vanish in
NEWEST = 2  # rows of which nobody knows yet whether they are a spike or a step
_ROOM = 0.25  # of the range without spikes, left on either side

Points = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


class PlottedCurve(NamedTuple):
    """Points in rising order of x."""

    x: FloatArray  # float64[points]
    y: FloatArray  # float64[points], finite


class Band(NamedTuple):
    """A mean over curves with the 95 % interval of the mean."""

    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def smooth_column(column: FloatArray, rows: float) -> FloatArray:
    """The weighted mean around each row, over about so many rows.

    The weight of a row falls by the same factor with each row of distance, on both sides alike, so
    that a curve turns where the data turn. Rows without a finite value have no weight. The sums
    are of doubling numbers of rows, exact even beside very large values, in O(rows log rows).

    Args:
        column: float64[rows]; what is not finite was not measured.
        rows: effective number of rows in the mean; 1 changes nothing.

    Returns:
        float64[rows], with the value itself where it is not finite.
    """
    decay = (rows - 1) / (rows + 1)
    if decay <= 0:
        return column
    present = np.isfinite(column)
    values = np.stack([np.where(present, column, 0.0), present.astype(np.float64)])
    total, weight = _decaying(values, decay) + _decaying(values[:, ::-1], decay)[:, ::-1] - values
    return np.where(present, total / np.where(present, weight, 1.0), column)


def _decaying(values: FloatArray, decay: float) -> FloatArray:
    """Sums of each value and those before it, whose weights decay with the distance."""
    sums, reach = values.copy(), 1
    while reach < values.shape[1] and (factor := decay**reach) > _NEGLIGIBLE:
        earlier = sums[:, :-reach] * factor
        sums[:, reach:] += earlier
        reach *= 2
    return sums


def without_spikes(column: FloatArray) -> FloatArray:
    """The running median of 5 rows: spikes of one or two rows vanish, steps and slopes stay.

    The newest two rows stay as they are.
    """
    if len(column) < _SPIKE:
        return column
    side = _SPIKE // 2
    padded = np.pad(column, side, mode="reflect")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, _SPIKE), axis=1)
    return np.concatenate([medians[:-NEWEST], column[-NEWEST:]])


def visible_range(drawn: FloatArray, calm: FloatArray) -> tuple[float, float]:
    """The range of y to show: all, unless spikes would take more than half of it.

    Args:
        drawn: values of a curve.
        calm: of the same curve, had the rows no spikes; see `without_spikes`.
    """
    lowest, highest = float(drawn.min()), float(drawn.max())
    low, high = float(calm.min()), float(calm.max())
    if low == high or highest - lowest <= 2 * (high - low):  # or nothing but spikes to see
        return lowest, highest
    room = _ROOM * (high - low)
    return max(lowest, low - room), min(highest, high + room)


def band(curves: Sequence[PlottedCurve]) -> Band | None:
    """Mean and 95 % interval (Student's t) of several curves where all of them have values.

    The interval stays within the curves, as what is beyond may be impossible. Curves with different
    x are interpolated. None where there is no such place.
    """
    start, end = max(curve.x[0] for curve in curves), min(curve.x[-1] for curve in curves)
    x = np.unique(np.concatenate([curve.x for curve in curves]))
    x = x[(x >= start) & (x <= end)]
    if not len(x):
        return None
    values = np.stack([np.interp(x, curve.x, curve.y) for curve in curves])
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(curves))
    reach = student_t.reach(0.95, len(curves) - 1) * error
    low, high = values.min(axis=0), values.max(axis=0)  # as `reporting.rows.Interval` stays within
    return Band(x, mean, np.maximum(low, mean - reach), np.minimum(high, mean + reach))


def within(x: FloatArray, low: float | None, high: float | None) -> slice:
    """The points from `low` to `high`, and one more on either side, to which lines lead."""
    first = 0 if low is None else max(0, int(np.searchsorted(x, low)) - 1)
    last = len(x) if high is None else int(np.searchsorted(x, high, side="right")) + 1
    return slice(first, last)


def downsample(x: FloatArray, columns: Sequence[FloatArray], pixels: int) -> Points:
    """Which points to draw: of each pixel's width the lowest and the highest of each column.

    The first and the last point stay. At most `2 * pixels * columns + 2` points do.

    Returns:
        int64[points], rising.
    """
    if len(x) <= 2 * pixels:
        return np.arange(len(x))
    share = (x - x[0]) / (x[-1] - x[0])
    pixel = np.minimum((share * pixels).astype(np.int64), pixels - 1)
    starts = np.flatnonzero(np.diff(pixel, prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    kept = [np.array([0, len(x) - 1])]
    for column in columns:
        order = np.lexsort((column, pixel))  # by pixel, then by value
        kept += [order[starts], order[ends]]
    return np.unique(np.concatenate(kept))
