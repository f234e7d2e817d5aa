"""A worker of a search: asks for trials, trains them, and tells how they went."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, Trial, TrialState

from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.comparison.curves import NoMetricError
from hackmatrix.research.comparison.estimates import interquartile_mean
from hackmatrix.research.tuning import study as studies
from hackmatrix.research.tuning.plan import SearchPlan, TuneOptions
from hackmatrix.research.tuning.training import (
    TRIES,
    Moment,
    Start,
    cause_of,
    last_words,
    moments,
    result_of,
    was_killed,
)

POLL = 0.3  # seconds between two looks at a run
_STEP = 5  # percent of a run between two reports to the pruner
_PATIENCE = 2.0  # see `_is_hopeless`

Say = Callable[[str], None]


class Kills:
    """The trials of a search that signals ended; its workers share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: Counter[str] = Counter()  # by settings
        self.missing: dict[
            str, dict[str, Any]
        ] = {}  # settings that were killed too often, by cause

    def note(self, name: str, cause: str, params: dict[str, Any]) -> bool:
        """Notes that a trial was killed; returns whether it is to be made again at once."""
        key = repr(sorted(params.items()))
        with self._lock:
            self._times[key] += 1
            if self._times[key] < TRIES:
                return True
            self.missing[f"{name} was {cause}, {TRIES} times"] = params
            return False


class Killed(Exception):
    """A signal has ended a training; the message names it."""


class Worker:
    """One thread of a search.

    Args:
        options: of the command.
        plan: of the search.
        number: of this worker, from 0 on.
        stop: set when the search is to end.
        start: begins a training.
        say: prints a line.
        kills: those of the search.
    """

    def __init__(
        self,
        options: TuneOptions,
        plan: SearchPlan,
        index: int,
        stop: threading.Event,
        start: Start,
        say: Say,
        kills: Kills,
    ) -> None:
        self._options, self._plan, self._stop, self._say = options, plan, stop, say
        self._start, self._kills = start, kills
        self._study = studies.open_study(options, plan, options.sampler, index)

    def work(self) -> None:
        """Makes trials until there are enough or the search is to end."""
        sampler = self._options.sampler
        while not self._stop.is_set():
            missing = len(self._kills.missing)
            trial = studies.ask(self._study, self._plan, sampler, self._options.num_trials, missing)
            if trial is None:
                return
            with studies.lock_of(self._plan, sampler, trial.number):
                trial.set_user_attr(studies.PLACE, studies.worker_address(self._plan))
                began = time.monotonic()
                try:
                    result = self._make(trial)
                except Killed as error:
                    self._make_again(trial, str(error))
                    continue
                trial_seconds = time.monotonic() - began
                if result is None:
                    studies.give_up(self._study, trial.number, trial.params)
                    return
                state, values = result
                trial.set_user_attr(studies.SECONDS, round(trial_seconds, 1))
                finished = self._study.tell(trial, values, state)
            self._say(_line(sampler, finished))

    def _make_again(self, trial: Trial, cause: str) -> None:
        """Gives up a trial that was killed, and makes it again now or with the next command."""
        name = f"{self._options.sampler} {trial.number}"
        again = self._kills.note(name, cause, trial.params)
        studies.give_up(self._study, trial.number, trial.params, again=again)
        when = "is made again" if again else "is made again by the next command"
        self._say(f"{name}: {cause}; {when}")

    def _make(self, trial: Trial) -> tuple[TrialState, list[float] | None] | None:
        """Trains a trial; returns its state and values, or None if the search is to end.

        Raises:
            NoMetricError: no run has the score that is searched for.
            Killed: a signal has ended the training.
        """
        run = studies.run_of(self._plan, self._options.sampler, trial.number)
        try:
            config = self._plan.of_trial(trial.params)
            state = self._train(trial, config, run)
            if state is None or state is TrialState.PRUNED:
                return None if state is None else (state, None)
            if state is TrialState.FAIL:
                raise UserError(last_words(run))
            result = result_of(run, self._plan.metric)
        except NoMetricError:
            raise  # all others would have none either
        except UserError as error:
            trial.set_user_attr(studies.REASON, str(error))
            return TrialState.FAIL, None
        trial.set_constraint("alarms", len(result.alarms.intersection(self._plan.constraints)))
        score = float(interquartile_mean(result.scores))
        values = [score] if self._plan.objective == "score" else [score, result.seconds]
        return TrialState.COMPLETE, values

    def _train(self, trial: Trial, config: TrainConfig, run: Path) -> TrialState | None:
        reported = 0
        with self._start(config, run) as process:
            while process.poll() is None:
                if self._stop.wait(POLL):
                    return None
                so_far = moments(run, self._plan.metric, config.learning.total_timesteps)
                if self._plan.objective == "pareto":
                    if so_far and self._is_hopeless(so_far[-1]):
                        trial.set_user_attr(studies.STOPPED, round(so_far[-1].share, 3))
                        return TrialState.COMPLETE
                    continue
                for each in so_far:
                    percent = _STEP * int(100 * each.share / _STEP)
                    if reported < percent < 100:
                        trial.report(each.value, percent)
                        reported = percent
                if reported and trial.should_prune():
                    return TrialState.PRUNED
        if was_killed(process.returncode):
            raise Killed(cause_of(process.returncode, run))
        return TrialState.COMPLETE if process.returncode == 0 else TrialState.FAIL

    def _is_hopeless(self, now: Moment) -> bool:
        """Whether another trial scored more in half the seconds than this one has now."""
        for other in self._study.get_trials(states=(TrialState.COMPLETE,), deepcopy=False):
            score, seconds = other.values
            if score > now.value and seconds * _PATIENCE < now.seconds:
                return True
        return False


def _line(sampler: str, trial: FrozenTrial) -> str:
    """A trial's end, as one line."""
    settings = ", ".join(f"{key.partition('.')[2]} {_short(v)}" for key, v in trial.params.items())
    how = {
        TrialState.COMPLETE: " ".join(f"{value:.4g}" for value in trial.values or []),
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: f"failed: {trial.user_attrs.get(studies.REASON)}",
    }[trial.state]
    return f"{sampler} {trial.number}: {how}  ({settings})"


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def search(
    options: TuneOptions, plan: SearchPlan, stop: threading.Event, start: Start, say: Say
) -> list[str]:
    """Makes the trials of a search, those of killed workers first.

    Returns:
        The trials that are missing because signals ended them again and again, each with the cause.

    Raises:
        Exception: whatever ended a worker.
    """
    study = studies.open_study(options, plan, options.sampler)
    if again := studies.take_over(study, plan, options.sampler):
        say(f"{again} trials that were ended are made again")
    if options.sampler == "grid":
        studies.enqueue_grid(study, plan, options.num_trials)
    count, kills = options.jobs * options.together, Kills()
    with ThreadPoolExecutor(count) as pool:
        workers = [
            pool.submit(
                lambda number: Worker(options, plan, number, stop, start, say, kills).work(),
                number,
            )
            for number in range(count)
        ]
        try:
            for worker in wait(workers, return_when=FIRST_EXCEPTION).done:
                worker.result()
        except BaseException:
            stop.set()
            raise
        finally:
            pool.shutdown()
            for params in kills.missing.values():
                study.enqueue_trial(params)
    return list(kills.missing)
