"""Interquartile means and their intervals."""

import numpy as np
import pytest
from scipy import stats

from hackmatrix.research.comparison.estimates import (
    differences,
    estimates,
    interquartile_mean,
    resampled,
)


@pytest.mark.parametrize("count", range(1, 14))
def test_the_middle_half_is_that_of_scipy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=(3, count))
    expected = stats.trim_mean(values, 0.25, axis=-1)
    np.testing.assert_allclose(interquartile_mean(values), expected)


def test_an_outlier_does_not_sway_it() -> None:
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, 1000.0])) == 2.5


def test_resamples_stay_within_their_stratum_and_reach_all_of_it() -> None:
    indices = resampled([2, 3])
    assert set(indices[:, :2].ravel()) == {0, 1}
    assert set(indices[:, 2:].ravel()) == {2, 3, 4}
    assert (indices == resampled([2, 3])).all()  # the same ones each time


def test_the_interval_of_two_values_reaches_both() -> None:
    # Both draws are the lesser one in a quarter of the resamples.
    (found,) = estimates(np.array([[0.0, 1.0]]), resampled([2]))
    assert tuple(found) == (0.5, 0.0, 1.0)


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    indices = resampled([30])
    held = 0
    for _ in range(100):
        (found,) = estimates(rng.normal(size=(1, 30)), indices)
        held += found.low <= 0 <= found.high
    assert 88 <= held <= 99


def test_what_is_common_to_pairs_does_not_widen_their_difference() -> None:
    ours = np.array([[0.0, 10.0, 20.0, 30.0]])
    theirs = ours - 1.0
    indices = resampled([4])
    (paired,) = differences(ours, theirs, indices, indices)
    assert paired.low == pytest.approx(1.0)
    assert paired.high == pytest.approx(1.0)
    (apart,) = differences(ours, theirs, indices, resampled([4], seed=1))
    assert apart.mean == pytest.approx(1.0)
    assert apart.low < -5
    assert apart.high > 7
