"""The study of a search in Optuna's storage: trials are asked for, told, and taken over."""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import optuna
from filelock import FileLock, Timeout
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, ProgrammingError, SQLAlchemyError

from hackmatrix.core.errors import UserError
from hackmatrix.research.tuning.plan import SearchPlan, TuneOptions, without_password
from hackmatrix.research.tuning.space import grid_points
from hackmatrix.runs.folder import TRIALS

SAMPLERS = ("tpe", "random", "grid")

PLACE, REASON, SECONDS, STOPPED = "host", "reason", "wall_seconds", "stopped"  # of a trial

BROKEN = "broke a constraint"

_JOURNAL = "journal.log"
_STARTUP, _WARMUP = 5, 20  # trials, and percent of a trial, before any is pruned
_AT_RANDOM = 10  # first trials of TPE, at most; a third of few
_asking = threading.Lock()  # between the count of trials and the next one

optuna.logging.set_verbosity(logging.WARNING)


def open_study(
    options: TuneOptions, plan: SearchPlan, sampler: str, worker: int = 0
) -> optuna.Study:
    """The study of a sampler, made if there is none yet; each thread needs its own.

    Raises:
        UserError: the storage can't be reached, or its file is damaged.
    """
    pareto = plan.objective == "pareto"
    prunes = options.pruning and not pareto
    study = optuna.create_study(
        storage=_storage(options, plan),
        study_name=_name(plan, sampler),
        directions=["maximize", "minimize"] if pareto else ["maximize"],
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(_STARTUP, _WARMUP)
        if prunes
        else optuna.pruners.NopPruner(),
    )
    seed = _seed(options.seed, worker, study)
    study.sampler = _sampler(sampler, seed, options.num_trials)
    return study


def studies(options: TuneOptions, plan: SearchPlan) -> Iterator[tuple[str, optuna.Study]]:
    """The studies that have trials, by sampler."""
    there = optuna.get_all_study_names(_storage(options, plan))
    for sampler in SAMPLERS:
        if _name(plan, sampler) in there:
            study = open_study(options, plan, sampler)
            if study.trials:
                yield sampler, study


def _name(plan: SearchPlan, sampler: str) -> str:
    return f"{plan.folder.absolute().name}-{sampler}"


def ask(
    study: optuna.Study, plan: SearchPlan, sampler: str, num_trials: int, missing: int = 0
) -> Trial | None:
    """The next trial; None if there are enough, with those that are missing for good."""
    with _asking:
        trials = study.get_trials(deepcopy=False)
        is_over = sum(counts(trial) for trial in trials) + missing >= num_trials
        if sampler == "grid":
            is_over |= all(trial.state != TrialState.WAITING for trial in trials)
        if is_over:
            return None
        return study.ask({key: each.distribution() for key, each in plan.space.items()})


def enqueue_grid(study: optuna.Study, plan: SearchPlan, num_trials: int) -> None:
    """Makes the points of the grid the next trials, in an order that favours none of them."""
    points = grid_points(plan.space)
    order = np.random.default_rng(0).permutation(len(points))
    for number in order[:num_trials]:
        study.enqueue_trial(points[number], skip_if_exists=True)


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial is one of those that were wanted: neither waiting nor given up."""
    given_up = trial.state == TrialState.FAIL and REASON not in trial.user_attrs
    return trial.state != TrialState.WAITING and not given_up


def breaks_constraint(trial: FrozenTrial) -> bool:
    """Whether a trial raised an alarm with which it can't win, whatever it scored."""
    return any(number > 0 for number in trial.constraints.values())


def run_of(plan: SearchPlan, sampler: str, trial: int) -> Path:
    """The folder of a trial's run."""
    return plan.folder / TRIALS / f"{sampler}-{trial}"


def worker_address(plan: SearchPlan) -> str:
    """The machine and the folder in which a worker keeps its locks."""
    return f"{socket.gethostname()}:{plan.folder.resolve()}"


def lock_of(plan: SearchPlan, sampler: str, trial: int) -> FileLock:
    """The lock that a worker holds while it trains a trial."""
    run = run_of(plan, sampler, trial)
    run.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(run.with_suffix(".lock"), blocking=False)


def give_up(study: optuna.Study, trial: int, params: dict[str, Any], *, again: bool = True) -> None:
    """Ends a trial that came to no end; one with the same settings is made later."""
    study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
    if again:
        study.enqueue_trial(params)


def take_over(study: optuna.Study, plan: SearchPlan, sampler: str) -> int:
    """Gives up the trials of this folder whose worker is gone; returns their number."""
    count = 0
    for frozen in study.get_trials(states=(TrialState.RUNNING,)):
        if frozen.user_attrs.get(PLACE) != worker_address(plan):
            continue
        with contextlib.suppress(Timeout), lock_of(plan, sampler, frozen.number):
            give_up(study, frozen.number, frozen.params)
            count += 1
    return count


class _JournalLock:
    """The lock of a journal, which the system releases when its process dies.

    Optuna's own locks are files that a kill leaves behind; others wait 30 seconds for them.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = FileLock(journal.with_suffix(".lock"))

    def acquire(self) -> bool:
        """Waits for the lock, and drops the half line of a write that a full disk refused."""
        self._lock.acquire()
        try:
            _drop_half_line(self._journal)
        except OSError:
            self._lock.release()
            raise
        return True

    def release(self) -> None:
        """Gives it back."""
        self._lock.release()


def _drop_half_line(journal: Path) -> None:
    with journal.open("rb+") as file:
        end = size = file.seek(0, os.SEEK_END)
        while end and not _ends_a_line(file, end):
            end -= 1
        if end < size:
            file.truncate(end)


def _ends_a_line(file: BinaryIO, end: int) -> bool:
    file.seek(end - 1)
    return file.read(1) == b"\n"


def _storage(options: TuneOptions, plan: SearchPlan) -> Any:
    if options.storage is not None:
        return _database(options.storage)
    path = plan.folder / _JOURNAL
    lock: Any = _JournalLock(path)  # has the methods of Optuna's, whose class is not public
    try:
        return JournalStorage(JournalFileBackend(str(path), lock))
    except OSError:
        raise
    except Exception as error:  # Optuna has no exception for a journal that was changed
        raise UserError(f"{path}: is no journal of a search, or a damaged one") from error


def _database(url: str) -> RDBStorage:
    """The database of this URL; its tables are made if there are none.

    Raises:
        UserError: it can't be reached, or its driver is not installed.
    """
    for patience in (0.5, 2.0, 0.0):
        try:
            return RDBStorage(url)
        except (IntegrityError, ProgrammingError) as error:
            if not patience:
                raise _unreachable(url, error) from None
            time.sleep(patience)  # another worker is making the tables
        except (SQLAlchemyError, ImportError) as error:
            raise _unreachable(url, error) from None
    raise AssertionError


def _unreachable(url: str, error: Exception) -> UserError:
    """The error in short, without the password."""
    shown = without_password(url)
    reason = str(error).replace(url, shown)
    with contextlib.suppress(SQLAlchemyError):
        if secret := make_url(url).password:
            reason = reason.replace(secret, "***")
    return UserError(f"--storage {shown}: {' '.join(reason.split())[:200]}")


def _seed(seed: int | None, worker: int, study: optuna.Study) -> int | None:
    """A seed for each worker and each start; None without --seed."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, worker, len(study.trials)]).generate_state(1)[0])


def _sampler(name: str, seed: int | None, num_trials: int) -> optuna.samplers.BaseSampler:
    if name == "tpe":
        at_random = min(_AT_RANDOM, max(1, num_trials // 3))
        return optuna.samplers.TPESampler(
            n_startup_trials=at_random, multivariate=True, constant_liar=True, seed=seed
        )
    return optuna.samplers.RandomSampler(seed=seed)  # the grid's points are waiting in the study
