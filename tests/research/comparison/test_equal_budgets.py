"""Comparisons at equal steps and at equal seconds, by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.curves import LearningCurve
from hackmatrix.research.comparison.equal_budgets import Comparison, single_seed
from hackmatrix.research.comparison.groups import ComparedGroup, apply_reference


def curve(
    values: list[float], *, seed: int = 0, env: str = "A", speed: float = 1.0
) -> LearningCurve:
    """Values after 1, 2, ... steps."""
    steps = np.arange(1.0, len(values) + 1)
    return LearningCurve(
        Path(f"{env}-{seed}"), env, seed, 0, steps, steps / speed, np.array(values)
    )


def group(name: str, *curves: LearningCurve) -> ComparedGroup:
    return ComparedGroup(name, curves)


def iqms(comparison: Comparison, name: str, *, seconds: bool) -> list[float]:
    return [each.mean for each in comparison.at_equal(seconds=seconds).groups[name]]


def difference(*groups: ComparedGroup, metric: str = "m") -> Any:
    (found,) = Comparison(metric, groups).at_equal(seconds=False).differences
    return found


def test_places_are_the_quarters_of_the_shortest_run_that_all_have_reached() -> None:
    slow, fast = curve([0, 1, 2, 3]), curve([0, 1, 2, 3, 4, 5, 6, 7], seed=1)
    found = Comparison("m", [group("x", slow), group("y", fast)]).at_equal(seconds=False)
    assert found.budgets.tolist() == [1, 2, 3, 4]
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
    found = difference(group("x", *theirs), group("y", *ours))
    assert found.paired == "seeds"
    assert found.estimates[-1] == pytest.approx((1.0, 1.0, 1.0))
    other = [curve([x, x + 1], seed=9 + i) for i, x in enumerate(luck)]
    apart = difference(group("x", *theirs), group("y", *other))
    assert apart.paired is None
    assert apart.estimates[-1].low < 0 < apart.estimates[-1].high


def test_evaluations_on_the_same_games_are_paired_by_these_too() -> None:
    groups = [group(name, curve([0, 1]), curve([0, 2], seed=1)) for name in "xy"]
    found = difference(*groups, metric="eval/mean_return")
    assert found.paired == "seeds and evaluation games"


def test_one_agent_has_no_interval() -> None:
    comparison = Comparison("m", [group("x", curve([0, 1])), group("y", curve([1, 2], seed=1))])
    found = comparison.at_equal(seconds=False)
    assert math.isnan(found.groups["x"][0].low)
    assert math.isnan(found.differences[0].estimates[0].high)
    told = comparison.as_dict()["steps"]["groups"]["x"][-1]
    assert told == {"iqm": 1.0, "low": None, "high": None}


def test_a_further_group_moves_no_score_of_several_environments() -> None:
    first = group("first", curve([0, 10], env="A"), curve([-500, -100], env="B"))
    second = group("second", curve([0, 5], env="A"), curve([-500, -300], env="B"))
    wild = group("wild", curve([0, 1000], env="A"), curve([-9000, -9000], env="B"))
    for given in ([first, second], [first, second, wild], [first, wild, second]):
        groups, scales = apply_reference(given, [])
        comparison = Comparison("m", groups, scales)
        assert iqms(comparison, "first", seconds=False)[-1] == 1.0
        assert iqms(comparison, "second", seconds=False)[-1] == 0.5


def test_the_reference_is_what_the_others_are_compared_with() -> None:
    groups = [group(name, curve([0, value])) for name, value in (("x", 1), ("y", 3))]
    ordered, scales = apply_reference(groups, ["y"])
    assert scales == {}
    (found,) = Comparison("m", ordered, scales).at_equal(seconds=False).differences
    assert (found.group, found.estimates[-1].mean) == ("x", -2.0)


def test_fixed_values_are_a_scale_of_one_environment_too() -> None:
    groups, scales = apply_reference([group("x", curve([0, 30], env="A"))], ["A=10,50"])
    found = Comparison("m", groups, scales).at_equal(seconds=False)
    assert found.groups["x"][-1].mean == 0.5


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["z"], "--reference z: is one of the groups x, y, or ENV=LOW,HIGH"),
        (["x", "y"], "--reference x y: is one of the groups"),
        (["A=1"], "must be ENV=LOW,HIGH"),
        (["A=2,1"], "must be ENV=LOW,HIGH"),
        (["A=nan,1"], "must be ENV=LOW,HIGH"),
        (["A=1,2", "C=1,2"], "--reference C=1,2: the groups are of A, B"),
        (["A=1,2", "A=1,3"], "each is given once"),
        (["A=1,2"], "lacks B"),
        (["y"], "y: has one value in all of its rows of A"),
    ],
)
def test_what_is_no_reference_is_refused(words: list[str], problem: str) -> None:
    x = group("x", curve([0, 1], env="A"), curve([0, 1], env="B"))
    y = group("y", curve([1, 1], env="A"), curve([0, 1], env="B"))
    with pytest.raises(UserError, match=problem):
        apply_reference([x, y], words)


def test_profiles_and_agents_are_those_of_the_last_place() -> None:
    low, high = (
        group(n, *(curve([0, x + i], seed=i) for i in range(4))) for n, x in (("l", 0), ("h", 8))
    )
    found = Comparison("m", [low, high]).at_equal(seconds=False)
    assert found.agents["h"][-1].tolist() == [8, 9, 10, 11]
    assert (found.thresholds()[0], found.thresholds()[-1]) == (0, 11)
    shares = {name: [each.mean for each in row] for name, row in found.profiles().items()}
    assert shares["l"][0] == 0.75  # one of the four is the least of all
    assert shares["h"][0] == 1.0
    assert shares["h"][-1] == 0.0
    assert sorted(shares["h"], reverse=True) == shares["h"]
    assert found.differences[0].improvements[-1].mean == 1.0


def test_runs_that_share_no_budget_are_refused() -> None:
    late = LearningCurve(
        Path("late"), "A", 1, 0, np.array([9.0, 10.0]), np.array([9.0, 10.0]), np.zeros(2)
    )
    with pytest.raises(UserError, match="A-0 ends before another run has its first m"):
        Comparison("m", [group("x", curve([0, 1])), group("y", late)])


def test_a_single_seed_is_noted() -> None:
    many = group("many", *(curve([0, 1], seed=i) for i in range(2)))
    assert single_seed([many]) is None
    assert "x has one seed: no interval" in str(single_seed([many, group("x", curve([0, 1]))]))
