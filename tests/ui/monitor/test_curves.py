"""The curves show what was measured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hackmatrix.ui.monitor.curves import (
    PlottedCurve,
    band,
    downsample,
    smooth_column,
    visible_range,
    within,
    without_spikes,
)

values = st.floats(-1e3, 1e3)
columns = arrays(np.float64, st.integers(1, 80), elements=values)
windows = st.floats(1, 200)


def slowly_smoothed(column: np.ndarray, rows: float) -> np.ndarray:
    """The definition: the mean of all finite rows, weighted by distance."""
    decay = (rows - 1) / (rows + 1)
    places = np.arange(len(column))
    finite = np.isfinite(column)
    result = column.copy()
    for i in np.flatnonzero(finite):
        weights = np.where(finite, decay ** abs(places - i), 0.0)
        result[i] = (weights[finite] * column[finite]).sum() / weights.sum()
    return result


@settings(max_examples=30)
@given(columns, windows)
def test_smoothing_is_the_weighted_mean_around_each_row(column: np.ndarray, rows: float) -> None:
    column[::7] = np.nan
    np.testing.assert_allclose(
        smooth_column(column, rows), slowly_smoothed(column, rows), rtol=1e-6, atol=1e-5
    )


def test_a_huge_value_is_forgotten_far_from_it() -> None:
    column = np.ones(5000)
    column[1000] = 1e30
    np.testing.assert_allclose(smooth_column(column, 5)[2000:], 1.0)


def test_values_that_are_not_finite_stay_and_count_for_nothing() -> None:
    column = np.array([1.0, np.inf, 1.0, np.nan, 1.0])
    np.testing.assert_array_equal(smooth_column(column, 10), column)


@settings(max_examples=30)
@given(columns, st.integers(1, 20))
def test_thinning_keeps_the_extremes_of_every_pixel(column: np.ndarray, pixels: int) -> None:
    x = np.arange(len(column), dtype=float)
    kept = downsample(x, [column], pixels)
    assert (np.diff(kept) > 0).all()
    assert len(kept) <= 2 * pixels + 2
    assert kept[0] == 0
    assert kept[-1] == len(x) - 1
    pixel = np.minimum((x / max(x[-1], 1) * pixels).astype(int), pixels - 1)
    for each in np.unique(pixel):
        drawn = column[kept[pixel[kept] == each]]
        assert drawn.min() == column[pixel == each].min()
        assert drawn.max() == column[pixel == each].max()


def test_few_points_are_not_thinned() -> None:
    assert len(downsample(np.arange(40.0), [np.zeros(40)], 20)) == 40


def test_a_spike_does_not_squeeze_the_rest() -> None:
    column = np.sin(np.arange(100.0))
    column[50:52] = 1e6
    column[20] = -1e6
    low, high = visible_range(column, without_spikes(column))
    assert -1.6 < low < -0.8
    assert 0.8 < high < 1.6


@pytest.mark.parametrize(
    "column",
    [
        np.linspace(-3, 11, 50),  # learning
        np.r_[np.zeros(97), [0.1, 0.2, 0.3]],  # a late rise
        np.r_[np.zeros(50), np.ones(3), np.zeros(47)],  # three rows are no spike
        np.full(20, 7.0),
        np.r_[np.zeros(50), 1.0, np.zeros(49)],  # the spike is all that there is
        np.r_[np.linspace(0, 1, 50), 9.0],  # the newest row may be the first of many
        np.r_[np.linspace(0, 1, 50), 9.0, 9.0],
        np.array([4.0]),
    ],
)
def test_what_is_no_spike_is_shown_whole(column: np.ndarray) -> None:
    low, high = visible_range(column, without_spikes(column))
    assert low == column.min()
    assert high >= column.max() - 0.1


def test_a_band_is_the_mean_and_students_interval() -> None:
    x = np.array([0.0, 1.0, 2.0])
    found = band([PlottedCurve(x, np.array([y, 2, 2 * y + 1])) for y in range(1, 9)])
    assert found is not None
    np.testing.assert_allclose(found.mean, [4.5, 2, 10])
    # t of seven degrees of freedom, times the standard error
    reach = 2.364624 * np.std(range(1, 9), ddof=1) / np.sqrt(8)
    np.testing.assert_allclose(found.high - found.mean, [reach, 0, 2 * reach], rtol=1e-6)
    np.testing.assert_allclose(found.mean - found.low, [reach, 0, 2 * reach], rtol=1e-6)


def test_the_band_of_few_curves_stays_within_them() -> None:
    found = band([PlottedCurve(np.arange(2.0), np.array(y)) for y in ([10.0, 0.0], [56.6, 1.0])])
    assert found is not None
    assert (found.low.tolist(), found.high.tolist()) == ([10, 0], [56.6, 1])


def test_a_band_is_only_where_all_curves_have_values() -> None:
    long = PlottedCurve(np.arange(10.0), np.zeros(10))
    short = PlottedCurve(np.array([2.0, 5.0]), np.array([2.0, 5.0]))
    found = band([long, short])
    assert found is not None
    np.testing.assert_array_equal(found.x, [2, 3, 4, 5])
    np.testing.assert_allclose(found.mean, [1, 1.5, 2, 2.5])  # half of the interpolated
    assert band([short, PlottedCurve(np.array([6.0]), np.array([1.0]))]) is None


def test_a_part_has_a_point_more_on_either_side() -> None:
    x = np.arange(10.0)
    assert list(x[within(x, 3.5, 5.5)]) == [3, 4, 5, 6]
    assert list(x[within(x, None, None)]) == list(x)
    assert list(x[within(x, 20, 30)]) == [9]
