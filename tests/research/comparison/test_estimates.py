"""Interquartile means, probabilities of improvement and profiles, with their intervals."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from hackmatrix.research.comparison.estimates import (
    differences,
    estimates,
    improvement,
    interquartile_mean,
    profile,
)
from hackmatrix.research.evaluation.statistics import Estimate


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13])
def test_the_middle_half_is_that_of_scipy(count: int) -> None:
    values = drawn(count, 3, count)
    expected = stats.trim_mean(values, 0.25, axis=-1)
    np.testing.assert_allclose(interquartile_mean(values), expected)


@pytest.mark.parametrize("count", [2, 3])
def test_of_two_and_three_agents_it_is_the_interval_of_student(count: int) -> None:
    values = drawn(count, count)
    (found,) = estimates(values[None], [count])
    whole = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found == pytest.approx((values.mean(), *whole))


@pytest.mark.parametrize("count", [12, 21])
def test_of_many_agents_it_is_that_of_tukey_and_mclaughlin(count: int) -> None:
    values = drawn(count, count)
    (found,) = estimates(values[None], [count])
    test = stats.ttest_ind(values, np.zeros(count), equal_var=False, trim=0.25)
    mean = stats.trim_mean(values, 0.25)
    reach = stats.t.ppf(0.975, count - 2 * (count // 4) - 1) * mean / test.statistic
    assert found == pytest.approx((mean, mean - reach, mean + reach))


def test_of_two_large_groups_it_is_the_test_of_yuen() -> None:
    ours, theirs = drawn(1, 12), 2 * drawn(2, 20) - 0.5
    (found,) = differences(ours[None], theirs[None], [12], [20])
    assert found.mean == pytest.approx(stats.trim_mean(ours, 0.25) - stats.trim_mean(theirs, 0.25))
    test = stats.ttest_ind(ours, theirs, equal_var=False, trim=0.25)
    error = found.mean / test.statistic
    freedom = int(test.df)  # rounded down
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, freedom) * error)


def test_of_three_pairs_it_is_the_paired_test() -> None:
    ours, theirs = drawn(3, 2, 3)
    (found,) = differences(ours[None], theirs[None], [3])
    low, high = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert found == pytest.approx(((ours - theirs).mean(), low, high))


def test_the_spread_between_environments_does_not_widen_an_interval() -> None:
    (near,) = estimates(np.array([[0.0, 1.0, 0.0, 1.0]]), [2, 2])
    (far,) = estimates(np.array([[0.0, 1.0, 50.0, 51.0]]), [2, 2])
    assert far.high - far.low == pytest.approx(near.high - near.low)
    (mixed,) = estimates(np.array([[0.0, 1.0, 50.0, 51.0]]), [4])
    assert mixed.high - mixed.low > 10 * (far.high - far.low)


def test_a_stratum_of_one_agent_has_no_interval() -> None:
    (found,) = estimates(np.array([[0.0, 1.0, 5.0]]), [2, 1])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    (better,) = improvement(np.ones((1, 2)), np.zeros((1, 1)), [2], [1])
    assert (better.mean, math.isnan(better.low)) == (1.0, True)


def test_between_them_all_agents_tell_the_spread() -> None:
    values = drawn(7, 5)
    (found,) = estimates(values[None], [5])
    reach = stats.t.ppf(0.975, 4) * 1.094 * stats.sem(values)
    assert found.high - found.mean == pytest.approx(reach)


def test_the_constant_for_few_agents_is_the_greatest_loss_of_normal_ones() -> None:
    values = drawn(0, 200_000, 9)
    losses = [interquartile_mean(values[:, :n]).std() * n**0.5 for n in range(4, 10)]
    assert max(losses) == pytest.approx(1.094, abs=0.006)


def test_improvement_counts_pairs_as_mann_and_whitney() -> None:
    ours, theirs = np.array([1.0, 2.0, 3.0, 3.0]), np.array([0.0, 2.0, 3.0])
    (found,) = improvement(ours[None], theirs[None], [4], [3])
    statistic = stats.mannwhitneyu(ours, theirs).statistic
    assert found.mean == pytest.approx(statistic / 12)
    (back,) = improvement(theirs[None], ours[None], [3], [4])
    assert back == pytest.approx((1 - found.mean, 1 - found.high, 1 - found.low))


def test_the_ends_of_an_improvement_solve_the_equation_of_newcombe() -> None:
    ours, theirs = drawn(5, 1, 6) + 1, drawn(6, 1, 8)
    (found,) = improvement(ours, theirs, [6], [8])

    def excess(truth: float) -> float:
        more = 7 - 1
        v = truth * (1 - truth) * (1 + more * ((1 - truth) / (2 - truth) + truth / (1 + truth)))
        return float((truth - found.mean) ** 2 - stats.t.ppf(0.975, 12) ** 2 * v / 48)

    assert found.low == pytest.approx(optimize.brentq(excess, 1e-9, found.mean))
    assert found.high == pytest.approx(optimize.brentq(excess, found.mean, 1 - 1e-9))


def test_even_a_clean_sweep_leaves_doubt_which_more_agents_lessen() -> None:
    few, many = (improvement(np.ones((1, n)), np.zeros((1, n)), [n], [n])[0] for n in (3, 20))
    assert few.mean == many.mean == few.high == 1.0
    assert 0.3 < few.low < many.low < 1


def test_of_several_environments_improvement_is_the_mean() -> None:
    one = improvement(np.ones((1, 3)), np.zeros((1, 3)), [3], [3])[0]
    two = improvement(
        np.array([[1, 1, 1, 0, 1, 2.0]]), np.array([[0, 0, 0, 0, 1, 2.0]]), *[[3, 3]] * 2
    )
    assert two[0].mean == pytest.approx((1.0 + 0.5) / 2)
    assert two[0].low > one.low / 2


def test_a_profile_is_the_share_above() -> None:
    found = profile(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 4.0]))
    assert [each.mean for each in found] == [1.0, 0.5, 0.0]
    wilson = stats.binomtest(2, 4).proportion_ci(0.95, method="wilson")
    assert found[1] == pytest.approx(Estimate(0.5, *wilson))
