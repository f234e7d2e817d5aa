"""The verdict on a search: its winners, with the scores of fresh seeds."""

from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.trial import FrozenTrial, create_trial

from hackmatrix.research.comparison.estimates import differences, estimates
from hackmatrix.research.tuning.plan import TuneOptions, plan_of
from hackmatrix.research.tuning.results import TuningReport
from hackmatrix.research.tuning.retraining import DEFAULT, Fresh, best_of


def trial(score: float) -> FrozenTrial:
    return create_trial(values=[score])


def fresh(scores: list[float], base: list[float] | None = None) -> Fresh:
    strata = [len(scores)]
    (mean,) = estimates(np.array([scores]), strata)
    better = None
    if base is not None:
        (better,) = differences(np.array([scores]), np.array([base]), strata)
    return Fresh(np.array(scores), 1.0, mean, better)


def report(winners: dict[str, FrozenTrial], found: dict[str, Fresh], folder: Path) -> TuningReport:
    studies = {name: optuna.create_study(direction="maximize") for name in winners}
    for name, winner in winners.items():
        studies[name].add_trial(winner)
    return TuningReport(plan_of(TuneOptions(output_dir=folder)), studies, winners, found)


def test_fresh_seeds_decide_and_not_the_score_of_the_search(tmp_path: Path) -> None:
    winners = {"tpe": trial(9.0), "random": trial(5.0)}
    lucky = report(winners, {"tpe": fresh([1, 1]), "random": fresh([4, 4])}, tmp_path)
    assert lucky.best == "random"
    assert report(winners, {}, tmp_path).best == "tpe"  # there is nothing else to go by
    assert report(winners, {"random": fresh([1, 1])}, tmp_path).best == "random"
    assert report({}, {}, tmp_path).best is None


def test_the_settings_of_the_file_win_if_no_winner_does_better(tmp_path: Path) -> None:
    found = {DEFAULT: fresh([5, 5]), "tpe": fresh([4, 4], [5, 5])}
    verdict = report({"tpe": trial(9.0)}, found, tmp_path)
    assert verdict.best == DEFAULT
    assert "no winner did better with fresh seeds" in verdict.text()
    assert "worse than the file's settings" in verdict.text()


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ([6.0, 7.0], "better than"),
        ([3.0, 4.0], "worse than"),
        ([4.0, 7.0], "neither better nor worse than"),
        ([6.0], "a single fresh seed, which shows little"),
    ],
)
def test_a_verdict_is_as_sure_as_its_interval(
    scores: list[float], verdict: str, tmp_path: Path
) -> None:
    found = {"tpe": fresh(scores, [5.0, 6.0][: len(scores)])}
    assert verdict in report({"tpe": trial(9.0)}, found, tmp_path).text()


def test_a_trial_that_broke_a_constraint_is_never_the_best(tmp_path: Path) -> None:
    plan = plan_of(TuneOptions(output_dir=tmp_path))
    study = optuna.create_study(direction="maximize")
    for score, broken in ((1.0, 0.0), (2.0, 1.0)):
        asked = study.ask()
        asked.set_constraint("alarm", broken)
        study.tell(asked, score)
    best = best_of(study, plan)
    assert best is not None
    assert best.values == [1.0]
    assert best_of(optuna.create_study(direction="maximize"), plan) is None
