"""Plots of a search: its history, which settings matter, two of them against each other, costs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from hackmatrix.research.figures import COLOURS, ROW_HEIGHT, label, line, name_rows, panels, svg
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
        figures["importance.svg"] = _importance(shares, metric)
    maps = {name: _map(studies[name], list(each)[:2]) for name, each in shares.items()}
    drawn = {name: trials for name, trials in maps.items() if trials is not None}
    if drawn:
        figure, all_axes = panels(f"{metric} by two settings; darker is more", len(drawn))
        for axes, (name, trials) in zip(all_axes, drawn.items(), strict=True):
            _draw_map(axes, name, trials)
        figures["contour.svg"] = svg(figure)
    return figures


def _importance(shares: Mapping[str, dict[str, float]], metric: str) -> str:
    height = 1 + ROW_HEIGHT * max(map(len, shares.values()))
    figure, all_axes = panels(f"what decides {metric} (PED-ANOVA)", len(shares), height=height)
    for axes, (name, each) in zip(all_axes, shares.items(), strict=True):
        axes.barh(range(len(each)), list(each.values()), 0.7, color=COLOURS[0], alpha=0.85)
        label(axes, name, "share")
        name_rows(axes, [f"{key} {share:.2f}" for key, share in each.items()])
    return svg(figure)


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
    figure, all_axes = panels(f"{metric} of the trials", len(studies))
    for axes, (name, study) in zip(all_axes, studies.items(), strict=True):
        trials = _complete_trials(study)
        xs = [trial.number for trial in trials]
        ys = [trial.values[0] for trial in trials]
        best = [max(ys[: i + 1]) for i in range(len(ys))]
        axes.scatter(xs, ys, 14, COLOURS[0], label="a trial")
        line(axes, xs, best, colour=COLOURS[1], name="the best so far")
        label(axes, name, "trial", metric)
        axes.legend(fontsize=8, frameon=False)
    return svg(figure)


def _pareto(studies: Mapping[str, optuna.Study], metric: str) -> str:
    """Score against seconds, and the front of each sampler."""
    figure, all_axes = panels(f"{metric} against seconds of training", len(studies))
    for axes, (name, study) in zip(all_axes, studies.items(), strict=True):
        kinds: dict[str, list[FrozenTrial]] = {"a trial": [], "stopped early": [], BROKEN: []}
        for trial in _complete_trials(study):
            stopped = "stopped early" if STOPPED in trial.user_attrs else "a trial"
            kinds[BROKEN if breaks_constraint(trial) else stopped].append(trial)
        for (text, some), colour in zip(kinds.items(), COLOURS, strict=False):
            scores = [trial.values[0] for trial in some]
            axes.scatter([trial.values[1] for trial in some], scores, 14, colour, label=text)
        front = sorted(study.best_trials, key=lambda trial: trial.values[1])
        xs, ys = [trial.values[1] for trial in front], [trial.values[0] for trial in front]
        line(axes, xs, ys, colour=COLOURS[3], name="the front")
        axes.set_xscale("log")
        label(axes, name, "seconds", metric)
        axes.legend(fontsize=8, frameon=False)
    return svg(figure)


class _Map(NamedTuple):
    """Trials by two of their settings."""

    keys: list[str]
    logs: list[bool]  # whether a setting is searched on a logarithmic scale
    xs: Values
    ys: Values
    shades: Values  # their scores, from 0 to 1


def _map(study: optuna.Study, keys: list[str]) -> _Map | None:
    """Trials by two settings; None if one has no numbers."""
    trials = _complete_trials(study)
    if len(keys) < 2:
        return None
    columns = [[_to_float(trial.params[key]) for trial in trials] for key in keys]
    scores = np.array([trial.values[0] for trial in trials])
    shades = (scores - scores.min()) / (np.ptp(scores) or 1.0)
    try:
        xs, ys = (np.array(column, float) for column in columns)
    except TypeError:  # a setting that is no number
        return None
    return _Map(keys, [_is_log(trials[0], key) for key in keys], xs, ys, shades)


def _draw_map(axes: Any, name: str, trials: _Map) -> None:
    """The points, and their shades spread over the plane: each cell has those near it."""
    scaled_points, edges = [], []
    for values, log in zip((trials.xs, trials.ys), trials.logs, strict=True):
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
    spread = (weights * trials.shades).sum(axis=-1) / weights.sum(axis=-1)
    axes.pcolormesh(*edges, spread, cmap="Blues", vmin=0, vmax=1)
    axes.scatter(trials.xs, trials.ys, 14, COLOURS[1])
    for scale, log in zip((axes.set_xscale, axes.set_yscale), trials.logs, strict=True):
        scale("log" if log else "linear")
    label(axes, name, *trials.keys)


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
