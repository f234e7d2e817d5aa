"""Runs a training: assembles its parts, then alternates compiled updates with work that is due."""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import nan
from pathlib import Path
from signal import Signals
from statistics import fmean
from typing import NamedTuple, Protocol

import jax

from hackmatrix.agents.networks.network import Network
from hackmatrix.core.devices.team import Team
from hackmatrix.core.version import __version__
from hackmatrix.environments.interface.environment import (
    Environment,
    PyTree,
)
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.keeper import Keeper
from hackmatrix.learning.run.multi_process import SAME_SIGNAL, LeadingTrainer, tell_trainer
from hackmatrix.learning.run.reporter import Reporter
from hackmatrix.learning.run.schedule import Chunks, Schedule, SharedPrograms, note_on_learning_rate
from hackmatrix.learning.run.snapshots import LoopState, make_initial_state, start_facts
from hackmatrix.learning.run.start import BEGINNING, Start, open_run_folder, prepare_run_folder
from hackmatrix.learning.run.stop import StopRequest
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.settings.devices import choose_devices
from hackmatrix.learning.trainer import seeds
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.runs.checkpoints import SCORE, Evaluation, best_checkpoint
from hackmatrix.runs.exports import newest_export
from hackmatrix.runs.folder import PROFILES, RunFolder, log_of
from hackmatrix.runs.trackers import TrackedRun, Trackers

Evaluate = Callable[[PyTree], dict[str, float]]  # highest `mean_return` is best
MakeEvaluate = Callable[[Environment, Network, TrainConfig], Evaluate]

_STOPPING = "stopping after this update; once more: at once"
_HUNG_UP = f"the terminal is gone, the run goes on; `kill {os.getpid()}` ends it with a checkpoint"


class End(Enum):
    """Why a run ended."""

    FINISHED = "finished"
    SIGNAL = "signal"
    UNHEALTHY = "unhealthy"
    ANOMALY = "anomaly"


class RunOutcome(NamedTuple):
    """The end of a run, and its results on disk."""

    run: Path
    updates: int
    timesteps: int
    end: End
    params: Path | None  # the newest exported ones; for many agents the folder that holds them
    checkpoint: Path | None  # the newest
    best: Path | None  # the checkpoint with the best evaluation
    signal: Signals | None = None
    saved: bool = True  # False: its last checkpoint, params or rows could not be written
    collapsed: bool = False  # whether the policy has collapsed, so that to resume is no use


class Stopping(Protocol):
    """What ends a run early: `StopRequest`, or the request of another process."""

    signal: Signals | None

    @property
    def is_requested(self) -> bool:
        """Whether the run is to end after this update, with a checkpoint."""


def train(
    config: TrainConfig,
    options: TrainOptions | None = None,
    console: Console | None = None,
    *,
    start: Start = BEGINNING,
    env: Environment | None = None,
    make_evaluate: MakeEvaluate | None = None,
    team: Team | None = None,
    stopping: contextlib.AbstractContextManager[Stopping] | None = None,
    programs: SharedPrograms | None = None,
) -> RunOutcome:
    """Trains until the run is complete, a signal arrives, or a critical alarm stops it.

    Args:
        config: the final settings (see `auto_scale_for_batch_size`).
        options: options of this command.
        console: displays the run; by default on standard output.
        start: where to start, see `find_start`.
        env: what to train on; by default the environment that `config` names.
        make_evaluate: returns the function that evaluates params, needed if `eval_interval`
            is set: `hackmatrix.research.evaluation.jax_agents.make_evaluate`.
        team: the processes that train together with this one, which leads them; the others run
            `follow`.
        stopping: entered while the run is under way; by default signals end the run.
        programs: those of other trainings in threads of this process, to share.

    Raises:
        LostError: other processes are gone.
        UserError: the configuration doesn't fit the devices or the start, or the run's folder
            can't be created; nothing was changed.
        LostFolderError: the run's folder was deleted, moved or replaced meanwhile.
        OSError: the folder can't be written to at the start.
    """
    with contextlib.ExitStack() as stack:
        console = console or stack.enter_context(Console())
        options, programs = options or TrainOptions(), programs or SharedPrograms()
        course = start.course(config.learning)
        if team is not None:
            tell_trainer(team, config, course, detect_anomaly=options.detect_anomaly)
        devices = _devices(config, options, console, team)
        env = env or config.environment.make(config.run.engine)
        with programs.turn():
            trainer = _trainer(env, config, devices, course, options, team, programs)
        with (
            open_run_folder(config, options, start) as run,
            stopping or _stop_by_signals(console, team) as stop,
        ):
            with programs.turn():
                first = _compile(trainer, config, start, options, console)
            prepare_run_folder(run, config, options, start, console)
            run.add_start(start_facts(first.update, devices))
            console.keep_log(log_of(run.path))
            console.say(f"run {run.path}")
            evaluate = _evaluate(env, trainer, config, make_evaluate, console)
            schedule = Schedule.of(config, course, options, first.update)
            for note in schedule.notes(config):
                console.say(note)
            if (jump := note_on_learning_rate(config.learning, start)) is not None:
                console.warn(jump)
            with _trackers(config, options, run, first, console) as trackers:
                keeper = Keeper(run, config, trainer, course, console, trackers)
                reporter = Reporter(run, config, trainer, course, console, trackers)
                loop = _Loop(
                    schedule,
                    Chunks(trainer, programs, schedule, options, run.path / PROFILES, console),
                    reporter,
                    keeper,
                    trackers,
                    evaluate,
                    programs,
                    check_folder=run.check,
                    should_stop=partial(_is_stop_requested, stop, team, console),
                )
                with keeper:
                    if not start.is_beginning:
                        keeper.keep_first(first, start)
                    last, end = loop.run(first)
            return _outcome(run, course, last, end, stop, keeper, reporter)


@dataclass(frozen=True)
class _Loop:
    """The loop: compiled updates, with logging, evaluation and saving in between."""

    schedule: Schedule
    chunks: Chunks
    reporter: Reporter
    keeper: Keeper
    trackers: Trackers
    evaluate: Evaluate | None
    programs: SharedPrograms
    check_folder: Callable[[], None]
    should_stop: Callable[[], bool]

    def run(self, now: LoopState) -> tuple[LoopState, End]:
        """Runs updates until the run ends, then saves a final checkpoint.

        After an anomaly, or if no agent's params are finite any more, it saves none: the run can
        resume from the last good one.

        Raises:
            LostFolderError: the run's folder was deleted, moved or replaced.
        """
        schedule, end = self.schedule, End.FINISHED
        self.reporter.begin(now.update)
        while now.update < schedule.num_updates:
            self.check_folder()
            if self.should_stop():
                end = End.SIGNAL
                break
            now = self.chunks.advance(now)
            self.trackers.start()  # not before: what they import would slow the first update down
            if (found := self.chunks.anomaly(now)) is not None:
                self.reporter.anomaly(*found)
                return now, End.ANOMALY
            if schedule.is_log_due(now.update):
                now, sums, timing = self.chunks.take_sums(now)
                self.reporter.metrics(now.update, sums, timing)
            best = self._best_evaluation(now)
            if best is not None or schedule.is_save_due(now.update, self.keeper.seconds_since_save):
                self.keeper.keep(now, best)
            if self.reporter.is_to_stop():
                end = End.UNHEALTHY
                break
            if self.reporter.is_critical and not self.keeper.is_any_finite(now):
                self.reporter.warn_all_broken(now.update)
                return now, End.ANOMALY
        self.keeper.finish(now)
        return now, end

    def _best_evaluation(self, now: LoopState) -> Evaluation | None:
        """Evaluates all agents if due; returns the evaluation if it is the best so far."""
        if self.evaluate is None or not self.schedule.is_evaluation_due(now.update):
            return None
        agents = self.keeper.agents_params(now)
        with self.programs.turn(), self.reporter.evaluating():
            results = [_nan_if_broken(params, self.evaluate(params)) for params in agents]
        best = self.keeper.is_best(fmean(result[SCORE] for result in results))
        evaluation = self.reporter.evaluation(now.update, results, best=best)
        return evaluation if best else None


def _nan_if_broken(params: PyTree, result: dict[str, float]) -> dict[str, float]:
    """The result of an evaluation; NaN if the params are not finite, whatever they scored."""
    return result if seeds.are_finite(params) else dict.fromkeys(result, nan)


def _stop_by_signals(console: Console, team: Team | None) -> StopRequest:
    say, warn = partial(console.say, _STOPPING), partial(console.warn, _HUNG_UP)
    return StopRequest(say, warn, SAME_SIGNAL if team else 0.0)


def _is_stop_requested(stop: Stopping, team: Team | None, console: Console) -> bool:
    """Whether a signal has reached this process or, which is taken for the same, another one."""
    if team is not None and not stop.is_requested and (number := team.stop_signal) is not None:
        stop.signal = number
        console.say(f"stopping: {number.name} has reached another process")
    return stop.is_requested


def _devices(
    config: TrainConfig, options: TrainOptions, console: Console, team: Team | None
) -> list[jax.Device]:
    chosen, notes = choose_devices(config, 1 if team is None else team.size)
    for note in notes:
        console.warn(note)
    if options.debug:
        console.say(f"devices: {', '.join(map(str, chosen))} of {len(jax.devices())}")
    return chosen


def _trainer(
    env: Environment,
    config: TrainConfig,
    devices: list[jax.Device],
    course: Course,
    options: TrainOptions,
    team: Team | None,
    programs: SharedPrograms,
) -> Trainer:
    make = partial(
        Trainer if team is None else partial(LeadingTrainer, team),
        config.environment.for_training(env),
        config.learning,
        config.network,
        devices,
        course,
        agents=config.run.seeds,
        detect_anomaly=options.detect_anomaly,
    )
    trainer = programs.get((str(config.compiled_settings), *devices, options.detect_anomaly), make)
    return trainer.with_inputs(config.learning, course, config.run.seeds)


def _compile(
    trainer: Trainer, config: TrainConfig, start: Start, options: TrainOptions, console: Console
) -> LoopState:
    """Compiles the trainer and returns the run's initial state."""
    devices = trainer.mesh.devices
    count = f"{devices.size} x " if devices.size > 1 else ""
    kind = devices.flat[0].device_kind
    with console.waiting(f"compiling for {count}{kind}; kept on disk for the next run"):
        began = time.perf_counter()
        first = make_initial_state(
            trainer, config, start, console, reset_optimizer=options.reset_optimizer
        )
        # Zero updates: this compiles and changes nothing.
        first = first._replace(train=jax.block_until_ready(trainer.run(first.train, 0)))
        trainer.gathered(first.train)  # so that a checkpoint need not wait for it
    console.say(f"compiled in {time.perf_counter() - began:.1f} s")
    return first


def _evaluate(
    env: Environment,
    trainer: Trainer,
    config: TrainConfig,
    make_evaluate: MakeEvaluate | None,
    console: Console,
) -> Evaluate | None:
    """The function that evaluates params; None if nothing is to be evaluated."""
    if config.report.eval_interval is None:
        return None
    if make_evaluate is None:
        console.warn("nothing is evaluated: eval_interval is set, make_evaluate is not given")
        return None
    return make_evaluate(env, trainer.network, config)


def _trackers(
    config: TrainConfig, options: TrainOptions, run: RunFolder, first: LoopState, console: Console
) -> Trackers:
    settings = {"version": __version__, **config.as_dict()}
    return Trackers.open(TrackedRun(run.path, settings, first.update, options.rewind), console.say)


def _outcome(
    run: RunFolder,
    course: Course,
    last: LoopState,
    end: End,
    stop: Stopping,
    keeper: Keeper,
    reporter: Reporter,
) -> RunOutcome:
    best = best_checkpoint(run.path)
    return RunOutcome(
        run=run.path,
        updates=last.update,
        timesteps=course.timesteps(last.update),
        end=end,
        params=newest_export(run.path),
        checkpoint=run.newest_checkpoint(),
        best=None if best is None else best.path,
        signal=stop.signal,
        saved=keeper.is_saved,
        collapsed=reporter.has_collapsed,
    )
