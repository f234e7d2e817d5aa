"""The results of searches: a table, JSON, plots, and the best settings as YAML."""

import json
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from hackmatrix.core.files import write_atomically
from hackmatrix.core.processes.typed_command import command_name
from hackmatrix.research.tuning.plan import SearchPlan, best_yaml
from hackmatrix.research.tuning.plots import importances, plots
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
