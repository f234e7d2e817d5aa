"""Comparisons at equal steps and at equal seconds, by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.curves import Curve
from hackmatrix.research.comparison.equal_budgets import Comparison, few_seeds
from hackmatrix.research.comparison.groups import Group


def curve(values: list[float], *, seed: int = 0, env: str = "A", speed: float = 1.0) -> Curve:
    """Values after 1, 2, ... steps."""
    steps = np.arange(1.0, len(values) + 1)
    return Curve(Path(f"{env}-{seed}"), env, seed, 0, steps, steps / speed, np.array(values))


def group(name: str, *curves: Curve) -> Group:
    return Group(name, curves)


def iqms(comparison: Comparison, name: str, *, seconds: bool) -> list[float]:
    return [each.mean for each in comparison.at_equal(seconds=seconds).groups[name]]


def test_places_are_the_quarters_of_the_shortest_run_that_all_have_reached() -> None:
    slow, fast = curve([0, 1, 2, 3]), curve([0, 1, 2, 3, 4, 5, 6, 7], seed=1)
    found = Comparison("m", [group("x", slow), group("y", fast)]).at_equal(seconds=False)
    assert found.places.tolist() == [1, 2, 3, 4]
    assert found.shortest == "A-0"


def test_at_equal_seconds_twice_the_speed_is_twice_the_way() -> None:
    groups = [group("x", curve([0, 1, 2, 3])), group("y", curve([0, 1, 2, 3], seed=1, speed=2))]
    comparison = Comparison("m", groups)
    assert iqms(comparison, "x", seconds=True)[-1] == 1.0  # after 2 s
    assert iqms(comparison, "y", seconds=True)[-1] == 3.0


def test_agents_of_equal_seeds_are_paired_so_that_their_common_luck_cancels() -> None:
    luck = [0.0, 10.0, 20.0, 30.0]
    ours = [curve([x, x + 1], seed=i) for i, x in enumerate(luck)]
    theirs = [curve([x, x], seed=i) for i, x in enumerate(luck)]
    (found,) = (
        Comparison("m", [group("x", *theirs), group("y", *ours)])
        .at_equal(seconds=False)
        .differences
    )
    assert found.paired == "seeds"
    assert found.estimates[-1] == pytest.approx((1.0, 1.0, 1.0))
    other = [curve([x, x + 1], seed=9 + i) for i, x in enumerate(luck)]
    (apart,) = (
        Comparison("m", [group("x", *theirs), group("y", *other)])
        .at_equal(seconds=False)
        .differences
    )
    assert apart.paired is None
    assert apart.estimates[-1].low < 0 < apart.estimates[-1].high


def test_evaluations_on_the_same_games_are_paired_by_these_too() -> None:
    groups = [group(name, curve([0, 1]), curve([0, 2], seed=1)) for name in "xy"]
    (found,) = Comparison("eval/mean_return", groups).at_equal(seconds=False).differences
    assert found.paired == "seeds and evaluation games"


def test_one_agent_has_no_interval() -> None:
    comparison = Comparison("m", [group("x", curve([0, 1])), group("y", curve([1, 2], seed=1))])
    found = comparison.at_equal(seconds=False)
    assert math.isnan(found.groups["x"][0].low)
    assert math.isnan(found.differences[0].estimates[0].high)
    assert comparison.as_dict()["steps"]["groups"]["x"][-1] == {
        "iqm": 1.0,
        "low": None,
        "high": None,
    }


def test_several_environments_are_put_on_one_scale_from_the_least_end_to_the_most() -> None:
    weak = group("weak", curve([0, 0], env="A"), curve([0, -500], env="B"))
    strong = group("strong", curve([0, 10], env="A"), curve([0, -100], env="B"))
    found = Comparison("m", [weak, strong]).at_equal(seconds=False)
    assert found.groups["weak"][-1].mean == 0.0
    assert found.groups["strong"][-1].mean == 1.0


def test_runs_that_share_no_budget_are_refused() -> None:
    late = Curve(Path("late"), "A", 1, 0, np.array([9.0, 10.0]), np.array([9.0, 10.0]), np.zeros(2))
    with pytest.raises(UserError, match="A-0 ends before another run has its first m"):
        Comparison("m", [group("x", curve([0, 1])), group("y", late)])


@pytest.mark.parametrize(
    ("agents", "warning"),
    [(1, "has one seed: no interval"), (9, "has 9 seeds: intervals of fewer than 10"), (10, None)],
)
def test_few_seeds_are_warned_of(agents: int, warning: str | None) -> None:
    found = few_seeds([group("x", *(curve([0, 1], seed=i) for i in range(agents)))])
    assert found is None if warning is None else warning in str(found)
