"""Quantiles of Student's t distribution, for intervals of the mean of a few values."""

import functools
import math


@functools.cache
def reach(confidence: float, freedom: int) -> float:
    """The number below which |t| stays with this probability.

    Args:
        confidence: above 0 and below 1.
        freedom: degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def whole(freedom: float) -> int:
    """Degrees of freedom as `reach` takes them, rounded down to at least 1 and at most 1,000."""
    return max(1, min(1_000, int(freedom + 1e-6)))  # which a sum of floats may miss


def _within(t: float, freedom: int) -> float:
    """The probability of |t| (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle, squared = math.atan(t / math.sqrt(freedom)), freedom / (freedom + t * t)
    is_odd = freedom % 2
    term, total = math.sqrt(squared) if is_odd else 1.0, 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= squared * (2 * k - 1 + is_odd) / (2 * k + is_odd)
    return 2 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total
