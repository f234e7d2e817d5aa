"""Plots of a search: its history, which settings matter, two of them against each other, costs."""

from collections.abc import Mapping

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from hackmatrix.charts import Bars, Line, Panel, Points, picture
from hackmatrix.charts.marks import Mark
from hackmatrix.tuning.study import STOPPED

_LEAST = 6  # finished trials for an importance


def plots(studies: Mapping[str, optuna.Study], metric: str, objective: str) -> dict[str, str]:
    """SVG texts by the name of their file."""
    found = {"history.svg": _history(studies, metric)}
    if objective == "pareto":
        found["pareto.svg"] = _pareto(studies, metric)
    shares = {name: importances(study, objective) for name, study in studies.items()}
    shares = {name: each for name, each in shares.items() if each}
    if shares:
        panels = [
            Panel(name, "share", "", [Bars(name, list(each), list(each.values()))])
            for name, each in shares.items()
        ]
        found["importance.svg"] = picture(f"what decides {metric} (PED-ANOVA)", panels)
    maps = [_map(studies[name], list(each)[:2], name) for name, each in shares.items()]
    drawn = [panel for panel in maps if panel is not None]
    if drawn:
        title = f"{metric} by the two settings that matter most: the darker, the higher"
        found["contour.svg"] = picture(title, drawn)
    return found


def importances(study: optuna.Study, objective: str) -> dict[str, float]:
    """The share of each setting in the differences of the score; empty if trials are too few."""
    finished = _finished(study)
    varied = {key for key in _keys(finished) if len({t.params[key] for t in finished}) > 1}
    if len(finished) < _LEAST or not varied or len({t.values[0] for t in finished}) < 2:
        return {}
    found: dict[str, float] = optuna.importance.get_param_importances(
        study,
        evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
        params=sorted(varied),
        target=(lambda trial: trial.values[0]) if objective == "pareto" else None,
    )
    return found


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(states=(TrialState.COMPLETE,), deepcopy=False)


def _keys(trials: list[FrozenTrial]) -> set[str]:
    return set.intersection(*(set(trial.params) for trial in trials)) if trials else set()


def _history(studies: Mapping[str, optuna.Study], metric: str) -> str:
    """The score of each trial, and the best so far."""
    panels = []
    for name, study in studies.items():
        trials = _finished(study)
        xs = [float(trial.number) for trial in trials]
        ys = [trial.values[0] for trial in trials]
        best = [max(ys[: i + 1]) for i in range(len(ys))]
        marks = [Points("a trial", xs, ys, _notes(trials)), Line("the best so far", xs, best)]
        panels.append(Panel(name, "trial", metric, marks))
    return picture(f"{metric} of the trials", panels)


def _pareto(studies: Mapping[str, optuna.Study], metric: str) -> str:
    """Score against seconds, and the front of each sampler."""
    panels = []
    for name, study in studies.items():
        trials = _finished(study)
        stopped = [trial for trial in trials if STOPPED in trial.user_attrs]
        whole = [trial for trial in trials if STOPPED not in trial.user_attrs]
        front = sorted(study.best_trials, key=lambda trial: trial.values[1])
        marks: list[Mark] = []
        for label, some in (("a trial", whole), ("stopped early", stopped)):
            xs, ys = [trial.values[1] for trial in some], [trial.values[0] for trial in some]
            marks.append(Points(label, xs, ys, _notes(some)))
        xs, ys = [trial.values[1] for trial in front], [trial.values[0] for trial in front]
        marks.append(Line("the front", xs, ys))
        panels.append(Panel(name, "seconds", metric, marks, log_x=True))
    return picture(f"{metric} against seconds of training", panels)


def _map(study: optuna.Study, keys: list[str], name: str) -> Panel | None:
    """The trials at the values of two settings, shaded by score; None if one has no numbers."""
    trials = _finished(study)
    if len(keys) < 2:
        return None
    columns = [[_number(trial.params[key]) for trial in trials] for key in keys]
    if any(value is None for column in columns for value in column):
        return None
    xs, ys = ([float(value or 0) for value in column] for column in columns)
    scores = [trial.values[0] for trial in trials]
    low, high = min(scores), max(scores)
    shades = [(score - low) / ((high - low) or 1.0) for score in scores]
    log_x, log_y = (_is_log(trials[0], key) for key in keys)
    points = Points(name, xs, ys, _notes(trials), shades)
    return Panel(name, keys[0], keys[1], [points], log_x, log_y)


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _is_log(trial: FrozenTrial, key: str) -> bool:
    distribution = trial.distributions[key]
    return not isinstance(distribution, CategoricalDistribution) and bool(
        getattr(distribution, "log", False)
    )


def _notes(trials: list[FrozenTrial]) -> list[str]:
    return [
        f"{trial.number}: {trial.values[0]:.4g}; "
        + ", ".join(f"{key.partition('.')[2]} {value}" for key, value in trial.params.items())
        for trial in trials
    ]
