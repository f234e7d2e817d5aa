"""Means with 95 % confidence intervals."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 5_000
_ENDS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
_DRAWN_AT_ONCE = 2_500_000  # values of resamples held in memory at once


class Estimate(NamedTuple):
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "-"
        return f"{self.mean:.3f}  [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: NDArray[Any]) -> Estimate:
    """The mean of `values` [n], n >= 1, with its interval; deterministic.

    For bools it is the Wilson interval of a rate (Wilson 1927), which allows for outcomes that have
    not been seen yet. For numbers it is the percentile bootstrap interval (Efron 1979); values that
    are all equal, a single one, and a mean that is not finite have an interval of length 0.
    """
    values = np.asarray(values)
    mean = float(values.mean(dtype=np.float64))
    if values.dtype == bool:
        return Estimate(mean, *_wilson(int(values.sum()), len(values)))
    if len(values) == 1 or not math.isfinite(mean):
        return Estimate(mean, mean, mean)
    numbers = values.astype(np.float64)
    means = bootstrap(len(numbers), lambda games: numbers[games].mean(axis=1))
    low, high = np.quantile(means, _ENDS)
    return Estimate(mean, float(low), float(high))


def interval(statistics: NDArray[np.float64]) -> tuple[float, float]:
    """The percentile interval of resampled statistics, of those that are a number.

    Its ends are among them, so that infinite ones do no harm; NaN if none is a number.
    """
    known = statistics[~np.isnan(statistics)]
    if not known.size:
        return math.nan, math.nan
    low, high = np.quantile(known, _ENDS, method="nearest")
    return float(low), float(high)


def bootstrap(
    count: int, statistic: Callable[[NDArray[np.int64]], NDArray[Any]]
) -> NDArray[np.float64]:
    """A statistic of resamples of `count` games, float64[RESAMPLES] (Efron 1979); deterministic.

    The resamples are the same for the same count, so statistics of two agents are paired.

    Args:
        count: the number of games, at least 1.
        statistic: from resamples, int64[R, count], places of games, to its values, [R].
    """
    rng = np.random.default_rng(0)
    at_once = max(1, _DRAWN_AT_ONCE // count)
    parts = [
        statistic(rng.integers(0, count, (min(at_once, RESAMPLES - done), count)))
        for done in range(0, RESAMPLES, at_once)
    ]
    return np.concatenate(parts)


def _wilson(successes: int, trials: int) -> tuple[float, float]:
    """The interval of a rate; its ends are exactly 0 or 1 where all outcomes are alike."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    whole = 2 * (trials + z**2)
    centre = (2 * successes + z**2) / whole
    reach = z / whole * math.sqrt(4 * successes * (trials - successes) / trials + z**2)
    return (
        0.0 if successes == 0 else centre - reach,
        1.0 if successes == trials else centre + reach,
    )
