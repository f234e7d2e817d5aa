"""Interquartile means with stratified bootstrap intervals.

After Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(https://arxiv.org/abs/2108.13264): the mean of the middle half of all agents is less noisy than
their median and less swayed by one of them than their mean. The interval resamples agents within
each environment.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hackmatrix.research.evaluation.statistics import CONFIDENCE, RESAMPLES, Estimate

Values = NDArray[np.float64]
Indices = NDArray[np.intp]

FEW = 10  # agents; of fewer, intervals are too narrow: see `benchmarks.coverage`


def interquartile_mean(values: Values) -> Values:
    """The mean of the middle half along the last axis: [..., n] -> [...].

    A quarter of the n values, rounded down, is cut off at each end.
    """
    cut = values.shape[-1] // 4
    middle = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(middle.mean(axis=-1))


def resampled(strata: Sequence[int], seed: int = 0) -> Indices:
    """Indices [RESAMPLES, n] of n values, drawn with replacement within each stratum.

    Args:
        strata: the number of values in each stratum; n is their sum.
        seed: of the random numbers.
    """
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *strata[:-1]])
    drawn = [
        start + rng.integers(size, size=(RESAMPLES, size))
        for start, size in zip(starts, strata, strict=True)
    ]
    return np.concatenate(drawn, axis=1)


def estimates(values: Values, indices: Indices) -> list[Estimate]:
    """The interquartile mean of each row of `values` [points, n], with its interval."""
    found = []
    for row in values:
        low, high = _bounds(interquartile_mean(row[indices]))
        found.append(Estimate(float(interquartile_mean(row)), low, high))
    return found


def differences(ours: Values, theirs: Values, indices: Indices, others: Indices) -> list[Estimate]:
    """Gain of the interquartile mean of `ours` over that of `theirs`, for each row.

    Args:
        ours: [points, n].
        theirs: [points, m].
        indices: resamples of ours.
        others: resamples of theirs; the same ones where row i of one is paired with i of the other.
    """
    found = []
    for mine, yours in zip(ours, theirs, strict=True):
        spread = interquartile_mean(mine[indices]) - interquartile_mean(yours[others])
        low, high = _bounds(spread)
        found.append(
            Estimate(float(interquartile_mean(mine) - interquartile_mean(yours)), low, high)
        )
    return found


def _bounds(spread: Values) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(spread, [tail, 1 - tail])
    return float(low), float(high)
