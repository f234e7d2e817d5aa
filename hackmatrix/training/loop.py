"""The loop of a training run: compiled updates, and what is due between them."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from signal import Signals
from typing import Any, NamedTuple

import jax
import numpy as np

import hackmatrix
from hackmatrix.agents.network import Network
from hackmatrix.environments.registry import environment_id, make_environment
from hackmatrix.interface.environment import Environment, PyTree
from hackmatrix.interface.metric import Severity
from hackmatrix.learner import ppo, seeds
from hackmatrix.learner.trainer import Trainer, TrainState
from hackmatrix.reporting.console import Console
from hackmatrix.reporting.health import RETURN, ROW_KEY, HealthOfAgents, recorded
from hackmatrix.reporting.metrics import summarise
from hackmatrix.reporting.rows import AGENTS, joined, told
from hackmatrix.runs.folder import LOG, PROFILES, RunFolder
from hackmatrix.runs.saver import EVALUATION, SCORE, Saver, Snapshot, best_checkpoint, score_of
from hackmatrix.runs.trackers import TrackedRun, Trackers
from hackmatrix.settings.config import Course, TrainConfig
from hackmatrix.settings.devices import choose_devices
from hackmatrix.settings.options import TrainOptions
from hackmatrix.training import exports, initial_state, run_folder, sources
from hackmatrix.training.initial_state import Begin
from hackmatrix.training.snapshots import arrays_of
from hackmatrix.training.sources import Source
from hackmatrix.training.stop import StopRequest

CALL_SECONDS = 1.0  # of one compiled call: signals and the display wait for its end

Evaluation = dict[str, Any]  # for many agents the means, and `agents`
Evaluate = Callable[[PyTree], dict[str, float]]  # of params; `mean_return` says which are best
MakeEvaluate = Callable[[Environment, Network, TrainConfig], Evaluate]


class End(Enum):
    """Why a run ended."""

    FINISHED = "finished"
    SIGNAL = "signal"
    UNHEALTHY = "unhealthy"
    ANOMALY = "anomaly"


class Outcome(NamedTuple):
    """How a run ended."""

    run: Path
    updates: int
    timesteps: int
    end: End
    params: Path | None  # the newest exported ones; of many agents the folder that holds them
    checkpoint: Path | None  # the newest
    best: Path | None  # the checkpoint with the best evaluation
    signal: Signals | None = None
    saved: bool = True  # False: the last checkpoint could not be written


def train(
    config: TrainConfig,
    options: TrainOptions | None = None,
    console: Console | None = None,
    *,
    source: Source | Path | None = None,
    env: Environment | None = None,
    make_evaluate: MakeEvaluate | None = None,
) -> Outcome:
    """Trains by `config` to its end, to a signal or to a critical alarm.

    Args:
        config: settings, as they are to be used (see `auto_scale_for_batch_size`).
        options: of this call.
        console: shows the run; by default standard output.
        source: what to continue: a checkpoint, or a file of params.
        env: what to train on; by default what `config` names.
        make_evaluate: how to evaluate params, where `config.eval_interval` asks for it.

    Raises:
        UserError: the configuration doesn't fit the devices or the source, or the run's folder
            can't be made; nothing was changed.
    """
    options = options or TrainOptions()
    with contextlib.ExitStack() as stack:
        if console is None:
            console = stack.enter_context(Console())
        chosen, notes = choose_devices(config)
        for note in notes:
            console.warn(note)
        if options.debug:
            console.say(f"devices: {', '.join(map(str, chosen))} of {len(jax.devices())}")
        env = env or make_environment(config.env, config.observation, config.max_episode_steps)
        course = _course(config, source)
        trainer = Trainer(env, config, chosen, course, detect_anomaly=options.detect_anomaly)
        run = stack.enter_context(run_folder.open_run(config, options, source))
        with StopRequest(
            lambda: console.say("stopping after this update; once more: at once")
        ) as stop:
            with console.waiting(_compiling(chosen)):
                began = time.perf_counter()
                first = _begin(trainer, source, console, options)
                # Compiles without updating anything.
                state = jax.block_until_ready(trainer.run(first.state, 0))
            console.say(f"compiled in {time.perf_counter() - began:.1f} s")
            run_folder.prepare(run, config, source, first.update)
            run.add_start(run_folder.start_facts(first.update, chosen))
            console.keep_log(run.path / LOG)
            console.say(f"run {run.path}")
            evaluate = None
            if config.eval_interval is not None and make_evaluate is not None:
                evaluate = make_evaluate(env, trainer.network, config)
            first = first._replace(state=state)
            trackers = stack.enter_context(_trackers(config, options, run, first, console))
            loop = _Loop(trainer, course, run, console, trackers, options, first, evaluate, stop)
            with loop.saver:
                if source is not None:
                    loop.keep_beginning()
                end = loop.train()
            return loop.outcome(end)


def _trackers(
    config: TrainConfig, options: TrainOptions, run: RunFolder, first: Begin, console: Console
) -> Trackers:
    settings = {"version": hackmatrix.__version__, **config.as_dict()}
    return Trackers.open(TrackedRun(run.path, settings, first.update, options.rewind), console.say)


def _course(config: TrainConfig, source: Source | Path | None) -> Course:
    if isinstance(source, Source):
        return source.course(config)
    return Course(config.batch_size, config.total_timesteps)


def _compiling(chosen: list[jax.Device]) -> str:
    count = f"{len(chosen)} x " if len(chosen) > 1 else ""
    return f"compiling for {count}{chosen[0].device_kind}; kept on disk for the next run"


def _begin(
    trainer: Trainer, source: Source | Path | None, console: Console, options: TrainOptions
) -> Begin:
    if isinstance(source, Path):
        return initial_state.from_params(trainer, source, console)
    if source is None:
        return initial_state.fresh(trainer)
    if source.checkpoint is None:
        console.say(f"{source.run} has no checkpoint yet: it starts from its beginning")
        return initial_state.fresh(trainer)
    return initial_state.from_checkpoint(
        trainer,
        source.checkpoint,
        source.facts,
        console,
        reset_optimizer=options.reset_optimizer,
    )


class _Loop:
    """One run under way."""

    def __init__(
        self,
        trainer: Trainer,
        course: Course,
        run: RunFolder,
        console: Console,
        trackers: Trackers,
        options: TrainOptions,
        first: Begin,
        evaluate: Evaluate | None,
        stop: StopRequest,
    ) -> None:
        self._trainer = trainer
        self._course = course
        self._config = trainer.config
        self._run = run
        self._console = console
        self._trackers = trackers
        self._options = options
        self._evaluate = evaluate
        self._stop = stop
        self._state: TrainState = first.state
        self._first = self._update = first.update
        self._logged = first.logged
        self._saved: int | None = first.update if run.has_checkpoint(first.update) else None
        self._profiled = max(options.profile_step, first.update + 1) if options.profile else None
        if self._profiled is not None and self._profiled > course.num_updates:
            console.warn(f"there is no update {self._profiled}: nothing will be profiled")
        self._health = HealthOfAgents(self._trainer.metrics)
        for row in run.metrics():  # alarms that were told once are not told again
            self._health.check(row["update"], recorded(row))
        best = best_checkpoint(run.path)
        self._best_score = None if best is None else score_of(best)
        self._metrics_failed = False
        self._finite = True  # some agent's params, when they were last to be saved
        self._broken: set[int] = set()  # seeds of agents that are known not to be finite
        self._evaluated_once = False
        self._calls = _Calls()
        self._save_clock = time.perf_counter()
        self.saver = Saver(
            run.path,
            self._config.keep_checkpoints,
            on_saved=self._saved_to,
            on_failed=self._save_failed,
        )

    def keep_beginning(self) -> None:
        """Saves what the run begins with, where its folder does not hold it yet."""
        if self._saved != self._update:
            self._save()

    def train(self) -> End:
        """Makes updates until the run ends, and leaves a checkpoint of its end."""
        config, console, total = self._config, self._console, self._course.num_updates
        console.begin(
            self._run.path.name, self._trainer.metrics, total, config.batch_size, self._first
        )
        if self._update >= total:
            console.say(f"all {total:,} updates are made; a higher --total-timesteps goes on")
        ahead = 1  # updates of the next call
        end = End.FINISHED
        while self._update < total:
            if self._stop.requested or console.closed:
                end = End.SIGNAL
                break
            count = min(ahead, self._next_due() - self._update)
            ahead = self._updates_per_call(self._call(count) / count)
            if (found := self._anomaly_found()) is not None:
                console.warn(found)
                return End.ANOMALY
            self._after_call()
            if config.on_unhealthy == "stop" and self._health.worst is Severity.CRITICAL:
                console.say("stopped by --on-unhealthy stop")
                end = End.UNHEALTHY
                break
        self._finish()
        return end

    def outcome(self, end: End) -> Outcome:
        """How the run ended, after everything is written."""
        run = self._run
        best = best_checkpoint(run.path)
        return Outcome(
            run=run.path,
            updates=self._update,
            timesteps=self._course.timesteps(self._update),
            end=end,
            params=exports.newest(run.path),
            checkpoint=run.newest_checkpoint(),
            best=None if best is None else best.path,
            signal=self._stop.signal,
            saved=self._finite and not self.saver.failed,
        )

    def _next_due(self) -> int:
        """The next update after which something is to be done."""
        config, update = self._config, self._update
        due = [self._course.num_updates]
        for interval in (config.log_interval, config.save_updates, config.eval_interval):
            if interval is not None:
                due.append((update // interval + 1) * interval)
        if self._profiled is not None:
            due += [each for each in (self._profiled - 1, self._profiled) if each > update]
        return min(due)

    def _call(self, count: int) -> float:
        """Makes `count` updates; their seconds."""
        profiled = self._update + 1 == self._profiled
        began = time.perf_counter()
        with self._trace() if profiled else contextlib.nullcontext():
            self._state = self._trainer.run(self._state, count)
            jax.block_until_ready(self._state.update)
        seconds = time.perf_counter() - began
        self._calls = _Calls(self._calls.updates + count, self._calls.seconds + seconds)
        self._update += count
        self._console.advance(self._update)
        if self._options.debug:
            self._console.say(_debug_line(self._update, count, seconds))
        return seconds

    @contextlib.contextmanager
    def _trace(self) -> Any:
        folder = self._run.path / PROFILES
        with jax.profiler.trace(str(folder)):
            yield
        self._console.say(f"profile of update {self._profiled}: tensorboard --logdir {folder}")

    def _anomaly_found(self) -> str | None:
        if not self._options.detect_anomaly:
            return None
        found = self._trainer.anomaly(self._state)
        if found is None:
            return None
        config = self._config
        seed, anomaly = found
        if anomaly.step is None:
            where = "before the first step of the optimizer"
        else:
            steps = config.num_minibatches // config.gradient_accumulation_steps
            epoch, step = divmod(anomaly.step - 1, steps)
            where = f"epoch {epoch + 1}, minibatch {step + 1} of {steps}"
        whose = f"seed {seed}: " if config.num_seeds > 1 else ""
        return f"{whose}not finite: {anomaly.tensor}; update {anomaly.update}, {where}"

    def _after_call(self) -> None:
        """Does what is due."""
        config, update = self._config, self._update
        at_end = update == self._course.num_updates
        if update % config.log_interval == 0 or at_end:
            self._log()
        evaluation = None
        if self._evaluate is not None and (update % (config.eval_interval or 1) == 0 or at_end):
            evaluation = self._evaluated(self._evaluate)
        if evaluation is not None or self._save_due():
            self._save(evaluation)

    def _log(self) -> None:
        """Writes and shows a row of metrics, and the alarms that it raises."""
        self._state, sums = self._trainer.take_sums(self._state)
        config = self._config
        agents = seeds.split(jax.device_get(sums), config.num_seeds)
        row = joined([summarise(agent, self._trainer.metrics) for agent in agents], config.seeds)
        steps = self._calls.updates * config.batch_size * config.num_seeds
        row["train/steps_per_second"] = steps / self._calls.seconds
        row["train/learning_rate"] = float(
            ppo.learning_rate(config, self._course, self._update - 1, np)
        )
        self._logged, self._calls = self._update, _Calls()
        alarms = self._health.check(self._update, row)
        self._write_row(row | ({ROW_KEY: [alarm.name for alarm in alarms]} if alarms else {}))
        self._console.log(self._update, {n: value for n, value in row.items() if n != AGENTS})
        if (text := told(row, RETURN)) is not None:
            self._console.note("agents", f"return {text}")
        for alarm in alarms:
            self._console.warn(alarm.message)
            self._trackers.alarm(self._update, alarm.name, alarm.message)

    def _write_row(self, row: Mapping[str, Any]) -> None:
        timesteps = self._course.timesteps(self._update)
        self._trackers.log(self._update, timesteps, row)
        try:
            self._run.add_metrics({"update": self._update, "timesteps": timesteps, **row})
        except OSError as error:
            if not self._metrics_failed:
                self._metrics_failed = True
                self._console.warn(f"metrics.jsonl can't be written: {error.strerror}")

    def _evaluated(self, evaluate: Evaluate) -> Evaluation | None:
        """Evaluates the params; the result where it is the best so far."""
        agents = self._agents_params()
        first = (
            contextlib.nullcontext()
            if self._evaluated_once
            else self._console.waiting("compiling the evaluation")
        )
        with first:
            results = [evaluate(params) for params in agents]
        self._evaluated_once = True
        row = joined([{f"eval/{n}": v for n, v in r.items()} for r in results], self._config.seeds)
        self._write_row(row)
        result = {name: row[f"eval/{name}"] for name in results[0]}
        score = result[SCORE]
        best = self._best_score is None or score > self._best_score
        shown = ", ".join(f"{name} {value:.3g}" for name, value in result.items())
        self._console.note("evaluation", f"update {self._update:,}: {shown}" + best * ", the best")
        if not best:
            return None
        self._best_score = score
        return result if len(results) == 1 else result | {AGENTS: results}

    def _agents_params(self) -> list[PyTree]:
        """For each agent, the params with which the network reads features as they are."""
        params = jax.device_get(self._trainer.network_params(self._state))
        return seeds.split(params, self._config.num_seeds)

    def _save_due(self) -> bool:
        if (interval := self._config.save_updates) is not None:
            return self._update % interval == 0
        return time.perf_counter() - self._save_clock >= 60 * self._config.save_interval_minutes

    def _save(self, evaluation: Evaluation | None = None) -> None:
        """Copies the state off the devices, and has it written while training goes on."""
        self._save_clock = time.perf_counter()
        self._saved = self._update
        if (snapshot := self._snapshot(evaluation)) is not None:
            self.saver.save(snapshot)

    def _snapshot(self, evaluation: Evaluation | None = None) -> Snapshot | None:
        """The state, copied off the devices; None where it is worth nothing."""
        agents = self._agents_params()
        finite = [seeds.are_finite(params) for params in agents]
        self._finite = any(finite)
        if not self._finite:
            self._console.warn(
                f"params are not finite at update {self._update}: not saved, what was saved before "
                "stays"
            )
            return None
        self._tell_broken(finite)
        facts = {
            sources.ENVIRONMENT: environment_id(self._config.env),
            "version": hackmatrix.__version__,
            sources.TIMESTEPS: self._course.timesteps(self._update),
            initial_state.LAST_LOGGED: self._logged,
            EVALUATION: evaluation,
            sources.CONFIG: self._config.as_dict(),
        }
        params = [each if good else None for each, good in zip(agents, finite, strict=True)]
        return Snapshot(self._update, arrays_of(self._state), facts, params)

    def _tell_broken(self, finite: Sequence[bool]) -> None:
        """Agents that have no params worth sharing, each once."""
        broken = {s for s, good in zip(self._config.seeds, finite, strict=True) if not good}
        for seed in sorted(broken - self._broken):
            self._console.warn(
                f"seed {seed}: params are not finite at update {self._update}: not exported; the "
                "other agents go on"
            )
        self._broken |= broken

    def _finish(self) -> None:
        """Leaves a checkpoint of the end."""
        if self._update > 0 and self._update != self._saved:
            self._save()
        self.saver.wait()
        finished = self._update >= self._course.num_updates
        exported = exports.is_exported(self._run.path, self._update)
        if finished and not exported and (snapshot := self._snapshot()) is not None:
            exports.export(self._run.path, snapshot, final=True)  # it was resumed at its end

    def _saved_to(self, snapshot: Snapshot, path: Path) -> None:
        final = snapshot.update >= self._course.num_updates
        exported = exports.export(self._run.path, snapshot, final=final)
        self._console.note("checkpoint", f"update {snapshot.update:,} saved to {path}")
        self._trackers.artifact(snapshot.update, [path, *exported])

    def _save_failed(self, snapshot: Snapshot, error: OSError) -> None:
        self._console.warn(
            f"the checkpoint of update {snapshot.update:,} can't be written: "
            f"{error.strerror or error}; what was saved before stays, training goes on"
        )

    def _updates_per_call(self, seconds_per_update: float) -> int:
        if self._trainer.mesh.devices.flat[0].platform == "cpu":
            return 1
        return max(1, int(CALL_SECONDS / seconds_per_update))


class _Calls(NamedTuple):
    """Compiled calls since the last row of metrics."""

    updates: int = 0
    seconds: float = 0.0


def _debug_line(update: int, count: int, seconds: float) -> str:
    memory = [device.memory_stats() for device in jax.local_devices()]
    used = [each["bytes_in_use"] / 2**20 for each in memory if each and "bytes_in_use" in each]
    shown = f", {max(used):,.0f} MiB in use on the fullest device" if used else ""
    return f"call of {count} to update {update:,}: {seconds:.3f} s{shown}"
