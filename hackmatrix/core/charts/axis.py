"""An axis: where values lie between its two ends, and the values that are written beside it."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

_MOST_TICKS = 6
_ROOM = 0.04  # of the axis, left free at both ends


class Axis(NamedTuple):
    """An axis from `low` to `high`, linear or logarithmic."""

    label: str
    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, values: Iterable[float], label: str, *, log: bool = False) -> Self:
        """An axis that has room for all finite values; on a logarithmic one, the positive ones."""
        shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
        low, high = min(shown), max(shown)
        if log:
            room = max((high / low) ** _ROOM, 1.01)
            return cls(label, low / room, high * room, log)
        room = (high - low) * _ROOM or abs(high) * _ROOM or 1.0
        return cls(label, low - room, high + room, log)

    def position(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values within the axis, at most six or so."""
        if not self.log:
            return _linear_ticks(self.low, self.high)
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 2, 5), (1,)):
            ticks = self._within([digit * 10.0**e for e in exponents for digit in digits])
            if len(ticks) <= _MOST_TICKS:
                break
        if len(ticks) > _MOST_TICKS:
            ticks = ticks[:: -(-len(ticks) // _MOST_TICKS)]
        return ticks if len(ticks) > 1 else _linear_ticks(self.low, self.high)

    def _within(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if self.low <= value <= self.high]


def abbreviate(value: float) -> str:
    """A number in a few characters: 40M, 2.5k, 0.0003."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{sign}"
    return f"{value:.4g}"


def _linear_ticks(low: float, high: float) -> list[float]:
    size = 10.0 ** math.floor(math.log10((high - low) / _MOST_TICKS))
    step = next(size * by for by in (1, 2, 5, 10) if (high - low) / (size * by) <= _MOST_TICKS)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
