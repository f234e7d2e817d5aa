"""The settings that decide a score."""

import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import create_trial

from hackmatrix.research.tuning.results import importances, plots
from hackmatrix.research.tuning.study import BROKEN

pytestmark = pytest.mark.thorough


def test_importances_of_two_objectives_are_those_of_the_score_alone() -> None:
    spread: dict[str, BaseDistribution] = {
        "a": FloatDistribution(0, 1),
        "b": FloatDistribution(0, 1),
    }
    alone = optuna.create_study(direction="maximize")
    both = optuna.create_study(directions=["maximize", "minimize"])
    for i in range(20):
        params = {"a": i / 20, "b": i * 7 % 20 / 20}
        score = params["a"] ** 4  # high for few values of `a`, low for most
        alone.add_trial(create_trial(params=params, distributions=spread, values=[score]))
        both.add_trial(create_trial(params=params, distributions=spread, values=[score, 1.0 + i]))
    found = importances(both)
    assert found == pytest.approx(importances(alone))
    assert found["a"] > found["b"]


def test_trials_that_break_a_constraint_stand_apart_from_the_front() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"])
    for values, alarms in (([1.0, 1.0], 0.0), ([2.0, 1.0], 1.0)):
        trial = study.ask()
        trial.set_constraint("alarms", alarms)
        study.tell(trial, values)
    picture = plots({"tpe": study}, "score", "pareto")["pareto.svg"]
    assert BROKEN in picture
