"""Means with bootstrap intervals."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 5_000
_AT_ONCE = 250  # resamples in memory


class Estimate(NamedTuple):
    """A mean and the interval that holds it with 95 % confidence."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f}  [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(values: NDArray[Any]) -> Estimate:
    """The mean of `values` [n] and its 95 % percentile bootstrap interval (Efron 1979)."""
    values = np.asarray(values, np.float64)
    random = np.random.default_rng(0)
    means = np.concatenate(
        [
            values[random.integers(len(values), size=(_AT_ONCE, len(values)))].mean(axis=1)
            for _ in range(RESAMPLES // _AT_ONCE)
        ]
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(values.mean()), float(low), float(high))
