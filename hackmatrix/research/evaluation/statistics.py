"""Means with 95 % confidence intervals."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 5_000
_DRAWN_AT_ONCE = 2_500_000  # values of resamples held in memory at once


class Estimate(NamedTuple):
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f}  [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: NDArray[Any]) -> Estimate:
    """The mean of `values` [n], n >= 1, with its interval; deterministic.

    For bools it is the Wilson interval of a rate (Wilson 1927), which allows for outcomes that have
    not been seen yet. For numbers it is the percentile bootstrap interval (Efron 1979); values that
    are all equal, a single one, and a mean that is not finite have an interval of length 0.
    """
    from scipy import stats  # slow to import

    values = np.asarray(values)
    mean = float(values.mean(dtype=np.float64))
    if values.dtype == bool:
        test = stats.binomtest(int(values.sum()), len(values))
        return Estimate(mean, *map(float, test.proportion_ci(CONFIDENCE, method="wilson")))
    if len(values) == 1 or not math.isfinite(mean):
        return Estimate(mean, mean, mean)
    result = stats.bootstrap(
        (values.astype(np.float64),),
        np.mean,
        method="percentile",
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        batch=max(1, _DRAWN_AT_ONCE // len(values)),
        rng=np.random.default_rng(0),
    )
    return Estimate(mean, *map(float, result.confidence_interval))
