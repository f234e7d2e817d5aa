"""Trains winners again with seeds that no trial has had.

The best of many trials is partly the luckiest: its score in the search is too high (the winner's
curse). Fresh seeds tell what its settings are worth.
"""

import math
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial

from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.comparison.estimates import differences, estimates
from hackmatrix.research.evaluation.statistics import Estimate
from hackmatrix.research.tuning import worker
from hackmatrix.research.tuning.plan import SearchPlan
from hackmatrix.research.tuning.study import STOPPED
from hackmatrix.research.tuning.training import (
    TRIES,
    Start,
    TrialResult,
    cause_of,
    is_finished,
    result_of,
    was_killed,
)

DEFAULT = "default"


class Fresh(NamedTuple):
    """Settings that were trained again: their scores, and how much better than the file's."""

    scores: NDArray[np.float64]
    seconds: float
    mean: Estimate
    better_by: Estimate | None  # agents of equal seeds are paired; None for those of the file

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "scores": self.scores.tolist(),
            "seconds": self.seconds,
            "score": _as_list(self.mean),
            "better_by": None if self.better_by is None else _as_list(self.better_by),
        }


def _as_list(value: Estimate) -> list[float | None]:
    """Mean, low and high; a single seed has no bounds."""
    return [each if math.isfinite(each) else None for each in value]


def best_of(study: optuna.Study, plan: SearchPlan) -> FrozenTrial | None:
    """The trial within the constraints that scored most; None if there is none."""
    try:
        if plan.objective == "score":
            return study.best_trial
        front = [trial for trial in study.best_trials if STOPPED not in trial.user_attrs]
        return max(front, key=lambda trial: trial.values[0], default=None)
    except ValueError:  # no trial has finished, or none within the constraints
        return None


def retrain(
    plan: SearchPlan,
    winners: dict[str, FrozenTrial],
    stop: threading.Event,
    start: Start,
    say: Callable[[str], None],
    *,
    at_once: int,
) -> dict[str, Fresh]:
    """Trains the settings of the file and those of each winner; what was trained before stays.

    Args:
        plan: of the search.
        winners: the best trials, by sampler.
        stop: set when the search is to end.
        start: begins a training.
        say: prints a line.
        at_once: trainings under way at the same time, at most.

    Returns:
        By name: `default`, and the winners' samplers. A training that failed is left out.
    """
    folder = plan.folder / f"fresh-{plan.fresh_seeds}"
    results = {}
    wanted = {DEFAULT: (DEFAULT, plan.of_fresh({}))}
    for sampler, trial in winners.items():
        wanted[sampler] = f"{sampler}-{trial.number}", plan.of_fresh(trial.params)
    with ThreadPoolExecutor(at_once) as pool:
        trainings = [
            pool.submit(_train, config, folder / called, stop, start)
            for called, config in wanted.values()
        ]
        try:
            wait(trainings, return_when=FIRST_EXCEPTION)
            causes = [each.result() for each in trainings]
        except BaseException:
            stop.set()
            raise
    for (name, (called, _)), cause in zip(wanted.items(), causes, strict=True):
        if cause is None:
            results[name] = result_of(folder / called, plan.metric)
        else:
            say(f"{called} with fresh seeds failed: {cause}")
    base = results.get(DEFAULT)
    return {name: _fresh(result, base, name) for name, result in results.items()}


def _train(config: TrainConfig, run: Path, stop: threading.Event, start: Start) -> str | None:
    """Trains to the end, again if a signal ends it; returns why that failed, or None."""
    code: int | None = None
    for _ in range(TRIES):
        if is_finished(run):
            return None
        with start(config, run) as process:
            while (code := process.poll()) is None:
                if stop.wait(worker.POLL):
                    raise KeyboardInterrupt
        if not was_killed(code):
            break
    return None if is_finished(run) else cause_of(code, run)


def _fresh(result: TrialResult, base: TrialResult | None, name: str) -> Fresh:
    strata = [len(result.scores)]
    (mean,) = estimates(result.scores[None], strata)
    better = None
    if base is not None and name != DEFAULT:
        (better,) = differences(result.scores[None], base.scores[None], strata)
    return Fresh(result.scores, result.seconds, mean, better)
