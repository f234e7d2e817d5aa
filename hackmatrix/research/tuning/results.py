"""The results of searches: a table, JSON, plots, and the best settings as YAML."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from hackmatrix.core.files import write_atomically
from hackmatrix.core.processes import command_name
from hackmatrix.research.figures import COLOURS, ROW_HEIGHT, label, line, name_rows, panels, svg
from hackmatrix.research.tuning.plan import SearchPlan, best_yaml
from hackmatrix.research.tuning.retraining import DEFAULT, Fresh
from hackmatrix.research.tuning.study import (
    BROKEN,
    REASON,
    SECONDS,
    STOPPED,
    breaks_constraint,
    counts,
)

BEST = "best.yaml"


@dataclass(frozen=True)
class TuningReport:
    """The searches of a folder, one for each sampler, and their winners with fresh seeds."""

    plan: SearchPlan
    studies: dict[str, optuna.Study]
    winners: dict[str, FrozenTrial]
    fresh: dict[str, Fresh]

    @property
    def best(self) -> str | None:
        """The best with fresh seeds, a sampler's winner or `default`; else that of the search."""
        trained = [name for name in self.winners if name in self.fresh]
        candidates = [*trained, *({DEFAULT} & self.fresh.keys())] if trained else list(self.winners)

        def score(name: str) -> float:
            fresh = self.fresh.get(name)
            return float(self.winners[name].values[0]) if fresh is None else fresh.mean.mean

        return max(candidates, key=score, default=None)

    def write(self) -> list[str]:
        """Writes the report into the search's folder; returns the names of the files."""
        files = plots(self.studies, self.plan.metric, self.plan.objective)
        files["report.json"] = json.dumps(self.as_dict(), indent=1) + "\n"
        if self.best is not None:
            files[BEST] = self._best(self.best)
        for name, text in files.items():
            write_atomically(self.plan.folder / name, text.encode())
        return sorted(files)

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "metric": self.plan.metric,
            "objective": self.plan.objective,
            "num_seeds": self.plan.num_seeds,
            "chosen": self.best,
            "samplers": {name: self._of(name) for name in self.studies},
            "fresh": {name: each.as_dict() for name, each in self.fresh.items()},
        }

    def text(self) -> str:
        """The figures as text."""
        lines = [f"{self.plan.folder}: {self.plan.metric}, {self.plan.num_seeds} agents a trial"]
        for name in self.studies:
            figures = self._of(name)
            ends = ", ".join(
                f"{count} {state}" for state, count in figures["trials_by_state"].items()
            )
            hours = f"{figures['hours']:.2f} h of trials"
            lines.append(f"{name:<8}{figures['trials']} trials ({ends}), {hours}")
            if name not in self.winners:
                lines.append("        none finished within the constraints")
                continue
            trial = self.winners[name]
            lines.append(f"        best: trial {trial.number}, {self._values(trial)}")
            lines += [f"          {key} {value}" for key, value in trial.params.items()]
            lines.append(f"        {self._verdict(name)}")
        if DEFAULT in self.fresh:
            lines.append(f"the file's settings, {self._verdict(DEFAULT)}")
        if self.best == DEFAULT:
            lines.append(f"no winner did better with fresh seeds: {BEST} has the file's settings")
        if self.best is not None:
            best = shlex.quote(str(self.plan.folder / BEST))
            lines.append(f"next    {command_name()} train --config {best}")
        return "\n".join(lines)

    def _best(self, name: str) -> str:
        """The settings of a winner, or those of the file, as a file."""
        if name == DEFAULT:
            return best_yaml(self.plan, {}, f"The file's settings, {self._verdict(name)}")
        trial = self.winners[name]
        about = f"Trial {trial.number} of {name}: {self._verdict(name)}"
        return best_yaml(self.plan, trial.params, about)

    def _of(self, name: str) -> dict[str, Any]:
        study = self.studies[name]
        trials = [trial for trial in study.trials if counts(trial)]
        states = Counter(trial.state.name.lower() for trial in trials)
        if stopped := sum(STOPPED in trial.user_attrs for trial in trials):
            states["stopped early"] = stopped
        if broken := sum(map(breaks_constraint, trials)):
            states[BROKEN] = broken
        winner = self.winners.get(name)
        front = study.best_trials if self.plan.objective == "pareto" else []
        return {
            "trials": len(trials),
            "trials_by_state": dict(states),
            "hours": sum(trial.user_attrs.get(SECONDS, 0.0) for trial in trials) / 3600,
            "best": None if winner is None else _as_dict(winner),
            "front": [_as_dict(trial) for trial in front],
            "importances": importances(study),
            "failures": {
                str(trial.number): trial.user_attrs[REASON]
                for trial in trials
                if trial.state == TrialState.FAIL
            },
        }

    def _values(self, trial: FrozenTrial) -> str:
        score = f"{trial.values[0]:.4g} in the search"
        return f"{score}, {trial.values[1]:.1f} s" if len(trial.values) > 1 else score

    def _verdict(self, name: str) -> str:
        """A winner's results with fresh seeds."""
        if name not in self.fresh:
            return "not trained with fresh seeds: its score in the search is too high"
        fresh = self.fresh[name]
        if len(fresh.scores) == 1:  # which has no interval
            return f"a single fresh seed, which shows little: {fresh.mean.mean:.3f}"
        said = f"{len(fresh.scores)} fresh seeds: {fresh.mean}"
        if fresh.better_by is None:
            return said
        low, high = fresh.better_by.low, fresh.better_by.high
        verdict = "better" if low > 0 else "worse" if high < 0 else "neither better nor worse"
        return f"{said}, {verdict} than the file's settings: {fresh.better_by}"


def _as_dict(trial: FrozenTrial) -> dict[str, Any]:
    return {"number": trial.number, "values": list(trial.values), "params": trial.params}


# --- Plots of a search: its history, which settings matter, two of them against each other, costs -


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
