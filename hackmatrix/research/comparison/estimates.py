"""Interquartile means of a few agents, with intervals that hold the truth as often as they say.

The mean of the middle half of all agents is less noisy than their median, and less swayed by one of
them than their mean (Agarwal et al. 2021, https://arxiv.org/abs/2108.13264). A bootstrap of two to
nine agents is too sure of them, so intervals are those of Student's t distribution instead, after
Tukey and McLaughlin 1963 for one group, Yuen 1974 for two groups, and Yuen and Dixon 1973 for
pairs. `benchmarks.coverage` measures how often they hold the truth.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core import student_t
from hackmatrix.research.evaluation.statistics import CONFIDENCE, Estimate, estimate

Values = NDArray[np.float64]

# Of fewer agents, the middle half alone is too few to tell the spread of all.
_MANY = 10
# By this the interquartile mean of normal values deviates more than their mean, at most.
_LOSS = 1.094


def interquartile_mean(values: Values) -> Values:
    """The mean of the middle half along the last axis: [..., n] -> [...].

    A quarter of the n values, rounded down, is cut off at each end.
    """
    cut = values.shape[-1] // 4
    middle = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(middle.mean(axis=-1))


def estimates(values: Values, strata: Sequence[int]) -> list[Estimate]:
    """The interquartile mean of each row of values, with its interval.

    Args:
        values: [points, n].
        strata: the number of values in each stratum, one after the other; n is their sum. If one
            has a single value, there are no intervals: their bounds are NaN.
    """
    return [_estimate(interquartile_mean(row), _error(_spread(row), strata)) for row in values]


def differences(
    ours: Values, theirs: Values, strata: Sequence[int], others: Sequence[int] | None = None
) -> list[Estimate]:
    """The gain of the interquartile mean of `ours` over that of `theirs`, for each row.

    Args:
        ours: [points, n].
        theirs: [points, m].
        strata: see `estimates`, of ours.
        others: likewise, of theirs; None if value i of ours is paired with value i of theirs.
    """
    estimates = []
    for mine, yours in zip(ours, theirs, strict=True):
        if others is None:
            error = _error(_spread(mine) - _spread(yours), strata)
        else:
            error = _sum(_error(_spread(mine), strata), _error(_spread(yours), others))
        estimates.append(_estimate(interquartile_mean(mine) - interquartile_mean(yours), error))
    return estimates


def improvement(
    ours: Values, theirs: Values, strata: Sequence[int], others: Sequence[int]
) -> list[Estimate]:
    """The probability that a value of ours is above one of theirs, for each row; ties count half.

    Of several strata it is their mean. The interval is that of Newcombe 2006 (Statistics in
    Medicine 25, 559-573, method 5) with Student's t in place of the normal distribution; of several
    strata the distances to its ends are added as those of independent estimates.

    Args:
        ours: [points, n].
        theirs: [points, m].
        strata: see `estimates`, of ours.
        others: likewise, of theirs, in the same order.
    """
    return [
        _mean_of(
            [
                _improvement(mine, yours)
                for mine, yours in zip(_split(a, strata), _split(b, others), strict=True)
            ]
        )
        for a, b in zip(ours, theirs, strict=True)
    ]


def profile(values: Values, thresholds: Values) -> list[Estimate]:
    """The share of values [n] above each threshold, with the interval of a rate (Wilson 1927)."""
    return [estimate(values > threshold) for threshold in thresholds]


def _improvement(ours: Values, theirs: Values) -> Estimate:
    n, m = len(ours), len(theirs)
    above = (np.sign(ours[:, None] - theirs).mean() + 1) / 2
    share = min(1.0, max(0.0, float(above)))
    if min(n, m) < 2:
        return Estimate(share, math.nan, math.nan)
    reach = student_t.reach(CONFIDENCE, n + m - 2)
    more = (n + m) / 2 - 1

    def is_within(truth: float) -> bool:
        deviation = 1 + more * ((1 - truth) / (2 - truth) + truth / (1 + truth))
        return (truth - share) ** 2 <= reach**2 * truth * (1 - truth) * deviation / (n * m)

    return Estimate(share, _end(share, 0.0, is_within), _end(share, 1.0, is_within))


def _end(inside: float, outside: float, is_within: Callable[[float], bool]) -> float:
    """The place between two others up to which something holds."""
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_within(middle) else (inside, middle)
    return outside


def _mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of independent estimates (Zou and Donner 2008)."""
    count, mean = len(estimates), sum(each.mean for each in estimates) / len(estimates)
    below = math.sqrt(sum((each.mean - each.low) ** 2 for each in estimates)) / count
    above = math.sqrt(sum((each.high - each.mean) ** 2 for each in estimates)) / count
    low, high = np.clip([mean - below, mean + above], 0, 1)  # NaN stays NaN
    return Estimate(mean, float(low), float(high))


def _split(row: Values, strata: Sequence[int]) -> list[Values]:
    return np.split(row, np.cumsum(strata)[:-1])


class _Error(NamedTuple):
    """The squared standard error of an estimate, and its degrees of freedom."""

    variance: float
    freedom: float


def _spread(row: Values) -> Values:
    """The values [n], of many with a quarter at each end moved to the values that remain."""
    cut = len(row) // 4
    if len(row) < _MANY:
        return row
    ends = np.sort(row)[[cut, -cut - 1]]
    return np.asarray(np.clip(row, *ends))


def _error(spread: Values, strata: Sequence[int]) -> _Error:
    """The error of the interquartile mean of values with this spread within their strata."""
    if min(strata) < 2:
        return _Error(math.nan, 1)
    count, cut = len(spread), len(spread) // 4
    parts = _split(spread, strata)
    variances = [len(part) * float(part.var(ddof=1)) for part in parts]
    whole = _sum(*(_Error(v, len(p) - 1) for v, p in zip(variances, parts, strict=True)))
    if count < _MANY:
        return _Error(whole.variance * (_LOSS if cut else 1) ** 2 / count**2, whole.freedom)
    kept = count - 2 * cut
    scale = (count - 1) / (count * kept * (kept - 1))
    return _Error(whole.variance * scale, whole.freedom * (kept - 1) / (count - 1))


def _sum(*errors: _Error) -> _Error:
    """The error of the sum of independent estimates (Satterthwaite 1946)."""
    variance = sum(each.variance for each in errors)
    squares = sum(each.variance**2 / each.freedom for each in errors)
    return _Error(variance, variance**2 / squares if squares > 0 else 1)


def _estimate(middle: Values | float, error: _Error) -> Estimate:
    freedom = student_t.whole(error.freedom)
    reach = student_t.reach(CONFIDENCE, freedom) * math.sqrt(error.variance)
    return Estimate(float(middle), float(middle) - reach, float(middle) + reach)
