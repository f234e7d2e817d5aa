"""Bootstrap intervals: the textbook's for many values, and exact where nothing varies."""

import numpy as np
import pytest

from hackmatrix.evaluation.statistics import bootstrap


def test_for_many_values_it_is_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, size=1_000)
    estimate = bootstrap(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert estimate.mean == pytest.approx(values.mean())
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_it_holds_the_truth_19_times_in_20() -> None:
    random = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        estimate = bootstrap(random.exponential(size=100))
        held += estimate.low <= 1.0 <= estimate.high
    assert 0.89 <= held / 200 <= 0.98


def test_what_never_varies_is_certain() -> None:
    assert bootstrap(np.full(10, 3.0)) == (3.0, 3.0, 3.0)
    assert bootstrap(np.array([True])) == (1.0, 1.0, 1.0)


def test_the_same_values_give_the_same_interval() -> None:
    values = np.arange(50.0)
    assert bootstrap(values) == bootstrap(values)
    assert str(bootstrap(np.full(2, 0.5))) == "0.500  [0.500, 0.500]"
