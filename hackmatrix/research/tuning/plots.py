"""Plots of a search: its history, which settings matter, two of them against each other, costs."""

from collections.abc import Mapping

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from hackmatrix.core.charts import Bars, Line, Mark, Panel, Points, ScalarField, picture
from hackmatrix.research.tuning.study import BROKEN, STOPPED, breaks_constraint

_CELLS, _NEAR = 24, 0.05  # of the plane of two settings, along each side; within which all is equal
_LEAST = 6  # finished trials for an importance


Values = NDArray[np.float64]


def plots(studies: Mapping[str, optuna.Study], metric: str, objective: str) -> dict[str, str]:
    """SVG texts by the name of their file."""
    figures = {"history.svg": _history(studies, metric)}
    if objective == "pareto":
        figures["pareto.svg"] = _pareto(studies, metric)
    shares = {name: importances(study) for name, study in studies.items()}
    shares = {name: each for name, each in shares.items() if each}
    if shares:
        panels = [
            Panel(
                name,
                "share",
                "",
                [Bars(name, list(each.values()))],
                rows=[f"{key} {share:.2f}" for key, share in each.items()],
            )
            for name, each in shares.items()
        ]
        figures["importance.svg"] = picture(f"what decides {metric} (PED-ANOVA)", panels)
    maps = [_map(studies[name], list(each)[:2], name) for name, each in shares.items()]
    drawn = [panel for panel in maps if panel is not None]
    if drawn:
        figures["contour.svg"] = picture(f"{metric} by two settings", drawn)
    return figures


def importances(study: optuna.Study) -> dict[str, float]:
    """The share of each setting in the differences of the score; empty if trials are too few."""
    finished = _complete_trials(study)
    varied = {key for key in _keys(finished) if len({t.params[key] for t in finished}) > 1}
    if len(finished) < _LEAST or not varied or len({t.values[0] for t in finished}) < 2:
        return {}
    scores = optuna.create_study(direction="maximize")  # of the score alone
    scores.add_trials(
        [
            create_trial(params=t.params, distributions=t.distributions, value=t.values[0])
            for t in finished
        ]
    )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found: dict[str, float] = optuna.importance.get_param_importances(
        scores, evaluator=evaluator, params=sorted(varied)
    )
    return found


def _complete_trials(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(states=(TrialState.COMPLETE,), deepcopy=False)


def _keys(trials: list[FrozenTrial]) -> set[str]:
    return set.intersection(*(set(trial.params) for trial in trials)) if trials else set()


def _history(studies: Mapping[str, optuna.Study], metric: str) -> str:
    """The score of each trial, and the best so far."""
    panels = []
    for name, study in studies.items():
        trials = _complete_trials(study)
        xs = [float(trial.number) for trial in trials]
        ys = [trial.values[0] for trial in trials]
        best = [max(ys[: i + 1]) for i in range(len(ys))]
        marks: list[Mark] = [Points("a trial", xs, ys, _notes(trials))]
        marks.append(Line("the best so far", xs, best))
        panels.append(Panel(name, "trial", metric, marks))
    return picture(f"{metric} of the trials", panels)


def _pareto(studies: Mapping[str, optuna.Study], metric: str) -> str:
    """Score against seconds, and the front of each sampler."""
    panels = []
    for name, study in studies.items():
        trials = _complete_trials(study)
        kinds: dict[str, list[FrozenTrial]] = {"a trial": [], "stopped early": [], BROKEN: []}
        for trial in trials:
            stopped = "stopped early" if STOPPED in trial.user_attrs else "a trial"
            kinds[BROKEN if breaks_constraint(trial) else stopped].append(trial)
        front = sorted(study.best_trials, key=lambda trial: trial.values[1])
        marks: list[Mark] = []
        for label, some in kinds.items():
            xs, ys = [trial.values[1] for trial in some], [trial.values[0] for trial in some]
            marks.append(Points(label, xs, ys, _notes(some)))
        xs, ys = [trial.values[1] for trial in front], [trial.values[0] for trial in front]
        marks.append(Line("the front", xs, ys))
        panels.append(Panel(name, "seconds", metric, marks, log_x=True))
    return picture(f"{metric} against seconds of training", panels)


def _map(study: optuna.Study, keys: list[str], name: str) -> Panel | None:
    """Two settings against each other, shaded by score; None if one has no numbers."""
    trials = _complete_trials(study)
    if len(keys) < 2:
        return None
    columns = [[_to_float(trial.params[key]) for trial in trials] for key in keys]
    logs = [_is_log(trials[0], key) for key in keys]
    scores = np.array([trial.values[0] for trial in trials])
    shades = (scores - scores.min()) / (np.ptp(scores) or 1.0)
    try:
        xs, ys = (np.array(column, float) for column in columns)
    except TypeError:  # a setting that is no number
        return None
    field = _field(xs, ys, shades, logs)
    points = Points("a trial", list(xs), list(ys), _notes(trials))
    return Panel(name, keys[0], keys[1], [field, points], log_x=logs[0], log_y=logs[1])


def _field(xs: Values, ys: Values, shades: Values, logs: list[bool]) -> ScalarField:
    """The shades of points spread over the plane: each cell has those near it."""
    scaled_points, edges = [], []
    for values, log in zip((xs, ys), logs, strict=True):
        scaled = np.log(values) if log else values
        low, room = scaled.min(), np.ptp(scaled) or 1.0
        scaled_points.append((scaled - low) / room)
        along = low + room * np.linspace(0, 1, _CELLS + 1)
        edges.append(np.exp(along) if log else along)
    middles = (np.arange(_CELLS) + 0.5) / _CELLS
    across, up = (
        middles[None, :, None] - scaled_points[0],
        middles[:, None, None] - scaled_points[1],
    )
    weights = 1 / (across**2 + up**2 + _NEAR**2)
    spread = (weights * shades).sum(axis=-1) / weights.sum(axis=-1)
    return ScalarField("darker is more", edges[0].tolist(), edges[1].tolist(), spread.tolist())


def _to_float(value: object) -> float | None:
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
