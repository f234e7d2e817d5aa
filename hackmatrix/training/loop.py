"""The loop of a training run: compiled updates, and what is due between them."""

import contextlib
import dataclasses
import datetime
import sys
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from signal import Signals
from typing import Any, NamedTuple

import jax
import numpy as np

import hackmatrix
from hackmatrix.agents.agent import Agent
from hackmatrix.agents.environment import Environment, PyTree
from hackmatrix.runs import machine
from hackmatrix.runs.checkpoints import remove_checkpoint, remove_partial
from hackmatrix.runs.folder import LOG, PROFILES, RunFolder, read_metrics
from hackmatrix.runs.saver import EVALUATION, SCORE, Saver, Snapshot, best_checkpoint, score_of
from hackmatrix.training import begin, devices, ppo, resume
from hackmatrix.training.begin import Begin
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.config_file import dump_config
from hackmatrix.training.console import Console
from hackmatrix.training.environments import environment_id, make_environment
from hackmatrix.training.health import ROW_KEY, Health, recorded
from hackmatrix.training.metrics import Severity, summarise
from hackmatrix.training.options import TrainOptions
from hackmatrix.training.resume import Source
from hackmatrix.training.snapshots import arrays_of
from hackmatrix.training.stop import StopRequest
from hackmatrix.training.trainer import Trainer, TrainState

CALL_SECONDS = 1.0  # of one compiled call: signals and the display wait for its end
FINAL, BEST = "final_params", "best_params"

Evaluation = dict[str, float]
Evaluate = Callable[[PyTree], Evaluation]  # of params; `mean_return` says which are best
MakeEvaluate = Callable[[Environment, Agent, TrainConfig], Evaluate]


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
    end: End
    params: Path | None  # the newest exported params
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
        chosen, notes = devices.find(config)
        for note in notes:
            console.warn(note)
        env = env or make_environment(config)
        trainer = Trainer(env, config, chosen, detect_anomaly=options.detect_anomaly)
        run = stack.enter_context(_open_run(config, options, source))
        with StopRequest(
            lambda: console.say("stopping after this update; once more: at once")
        ) as stop:
            with console.waiting(_compiling(chosen)):
                began = time.perf_counter()
                first = _begin(trainer, source, console, options)
                # Compiles without updating anything.
                state = jax.block_until_ready(trainer.run(first.state, 0))
            console.say(f"compiled in {time.perf_counter() - began:.1f} s")
            _prepare_run(run, config, source, first.update)
            run.add_start(_start_facts(first.update, chosen))
            console.keep_log(run.path / LOG)
            console.say(f"run {run.path}")
            evaluate = None
            if config.eval_interval is not None and make_evaluate is not None:
                evaluate = make_evaluate(env, trainer.agent, config)
            loop = _Loop(
                trainer, run, console, options, first._replace(state=state), evaluate, stop
            )
            with loop.saver:
                end = loop.train()
            return loop.outcome(end)


def _start_facts(update: int, chosen: list[jax.Device]) -> dict[str, Any]:
    return {
        "update": update,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "devices": len(chosen),
        **machine.machine(),
        "versions": machine.versions("jaxlib", "numpy", "flax", "optax", "orbax-checkpoint"),
        "commit": machine.commit(),
    }


def _compiling(chosen: list[jax.Device]) -> str:
    count = f"{len(chosen)} x " if len(chosen) > 1 else ""
    return f"compiling for {count}{chosen[0].device_kind}; kept on disk for the next run"


@contextlib.contextmanager
def _open_run(config: TrainConfig, options: TrainOptions, source: Source | Path | None) -> Any:
    """The run's folder, locked. One that was made for nothing is removed."""
    run = _run_folder(config, options, source)
    try:
        yield run
    finally:
        run.close()
        run.remove_if_unused()


def _run_folder(
    config: TrainConfig, options: TrainOptions, source: Source | Path | None
) -> RunFolder:
    if isinstance(source, Source) and (own := _own_folder(options, source)) is not None:
        run = RunFolder(own)
        try:
            resume.check_rewind(source, run.path, options.rewind)
        except BaseException:
            run.close()
            raise
        return run
    if options.output_dir is not None:
        return RunFolder.create_at(options.output_dir)
    return RunFolder.create(config.checkpoint_dir, options.run_name, options.run_suffix)


def _own_folder(options: TrainOptions, source: Source) -> Path | None:
    """The folder of the run that goes on; None where it goes on in another one."""
    if source.run is None or options.run_suffix:
        return None
    if options.output_dir is not None:
        return source.run if options.output_dir.resolve() == source.run.resolve() else None
    return source.run if options.run_name in (None, source.run.name) else None


def _begin(
    trainer: Trainer, source: Source | Path | None, console: Console, options: TrainOptions
) -> Begin:
    if isinstance(source, Path):
        return begin.from_params(trainer, source, console)
    if source is None:
        return begin.fresh(trainer)
    if source.checkpoint is None:
        console.say(f"{source.run} has no checkpoint yet: it starts from its beginning")
        return begin.fresh(trainer)
    return begin.from_checkpoint(
        trainer,
        source.checkpoint,
        source.facts,
        console,
        reset_optimizer=options.reset_optimizer,
    )


def _prepare_run(
    run: RunFolder, config: TrainConfig, source: Source | Path | None, update: int
) -> None:
    """Brings the folder to where the run begins: what came after that is made again."""
    run.write_config(dump_config(config))
    if not isinstance(source, Source):
        return
    remove_partial(run.path)
    if source.run is not None and source.run.resolve() == run.path.resolve():
        for checkpoint in resume.check_rewind(source, run.path, rewind=True):
            remove_checkpoint(checkpoint)
        run.remove_params_after(update)
        run.cut_metrics(update)
    elif source.run is not None:
        rows = [row for row in read_metrics(source.run) if row["update"] <= update]
        run.write_metrics(rows)


class _Loop:
    """One run under way."""

    def __init__(
        self,
        trainer: Trainer,
        run: RunFolder,
        console: Console,
        options: TrainOptions,
        first: Begin,
        evaluate: Evaluate | None,
        stop: StopRequest,
    ) -> None:
        self._trainer = trainer
        self._config = trainer.config
        self._run = run
        self._console = console
        self._options = options
        self._evaluate = evaluate
        self._stop = stop
        self._state: TrainState = first.state
        self._first = self._update = first.update
        self._logged = first.logged
        self._saved: int | None = first.update if run.has_checkpoint(first.update) else None
        self._profiled = max(options.profile_step, first.update + 1) if options.profile else None
        self._health = Health()
        for row in run.metrics():  # alarms that were told once are not told again
            self._health.check(row["update"], recorded(row))
        best = best_checkpoint(run.path)
        self._best_score = None if best is None else score_of(best)
        self._metrics_failed = False
        self._evaluated_once = False
        self._calls = _Calls()
        self._save_clock = time.perf_counter()
        self.saver = Saver(
            run.path,
            self._config.keep_checkpoints,
            on_saved=self._saved_to,
            on_failed=self._save_failed,
        )

    def train(self) -> End:
        """Makes updates until the run ends, and leaves a checkpoint of its end."""
        config, console = self._config, self._console
        console.begin(self._run.path.name, config.num_updates, config.batch_size, self._first)
        if self._update >= config.num_updates:
            console.say(
                f"all {config.num_updates:,} updates are made; a higher --total-timesteps goes on"
            )
        ahead = 1  # updates of the next call
        end = End.FINISHED
        while self._update < config.num_updates:
            if self._stop.requested:
                end = End.SIGNAL
                break
            count = min(ahead, self._next_due() - self._update)
            ahead = _updates_per_call(self._call(count) / count)
            if (found := self._anomaly_found()) is not None:
                console.warn(found)
                return End.ANOMALY
            if self._after_call() is Severity.CRITICAL and config.on_unhealthy == "stop":
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
            end=end,
            params=run.newest_params(),
            checkpoint=run.newest_checkpoint(),
            best=None if best is None else best.path,
            signal=self._stop.signal,
            saved=not self.saver.failed,
        )

    def _next_due(self) -> int:
        """The next update after which something is to be done."""
        config, update = self._config, self._update
        due = [config.num_updates]
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
        if found.step is None:
            where = "before the first step of the optimizer"
        else:
            steps = config.num_minibatches // config.gradient_accumulation_steps
            epoch, step = divmod(found.step - 1, steps)
            where = f"epoch {epoch + 1}, minibatch {step + 1} of {steps}"
        return f"not finite: {found.tensor}; update {found.update}, {where}"

    def _after_call(self) -> Severity | None:
        """Does what is due; the severity of the worst alarm."""
        config, update = self._config, self._update
        at_end = update == config.num_updates
        worst = None
        if update % config.log_interval == 0 or at_end:
            worst = self._log()
        evaluation = None
        if self._evaluate is not None and (update % (config.eval_interval or 1) == 0 or at_end):
            evaluation = self._evaluated(self._evaluate)
        if evaluation is not None or self._save_due():
            self._save(evaluation)
        return worst

    def _log(self) -> Severity | None:
        """Writes and shows a row of metrics; the severity of the worst alarm that it raises."""
        self._state, sums = self._trainer.take_sums(self._state)
        row: dict[str, Any] = summarise(jax.device_get(sums))
        steps = self._calls.updates * self._config.batch_size
        row["train/steps_per_second"] = steps / self._calls.seconds
        row["train/learning_rate"] = float(ppo.learning_rate(self._config, self._update - 1, xp=np))
        self._logged, self._calls = self._update, _Calls()
        alarms = self._health.check(self._update, row)
        self._write_row(row | ({ROW_KEY: [alarm.name for alarm in alarms]} if alarms else {}))
        self._console.log(self._update, row)
        for alarm in alarms:
            self._console.warn(alarm.message)
        severities = [alarm.severity for alarm in alarms]
        if Severity.CRITICAL in severities:
            return Severity.CRITICAL
        return severities[0] if severities else None

    def _write_row(self, row: Mapping[str, Any]) -> None:
        timesteps = self._update * self._config.batch_size
        try:
            self._run.add_metrics({"update": self._update, "timesteps": timesteps, **row})
        except OSError as error:
            if not self._metrics_failed:
                self._metrics_failed = True
                self._console.warn(f"metrics.jsonl can't be written: {error.strerror}")

    def _evaluated(self, evaluate: Evaluate) -> Evaluation | None:
        """Evaluates the params; the result where it is the best so far."""
        params = jax.device_get(self._trainer.network_params(self._state))
        first = (
            contextlib.nullcontext()
            if self._evaluated_once
            else self._console.waiting("compiling the evaluation")
        )
        with first:
            result = evaluate(params)
        self._evaluated_once = True
        self._write_row({f"eval/{name}": value for name, value in result.items()})
        score = result[SCORE]
        best = self._best_score is None or score > self._best_score
        shown = ", ".join(f"{name} {value:.3g}" for name, value in result.items())
        self._console.note("evaluation", f"update {self._update:,}: {shown}" + best * ", the best")
        if not best:
            return None
        self._best_score = score
        return result

    def _save_due(self) -> bool:
        if (interval := self._config.save_updates) is not None:
            return self._update % interval == 0
        return time.perf_counter() - self._save_clock >= 60 * self._config.save_interval_minutes

    def _save(self, evaluation: Evaluation | None = None) -> None:
        """Copies the state off the devices, and has it written while training goes on."""
        self._save_clock = time.perf_counter()
        params = jax.device_get(self._trainer.network_params(self._state))
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params)):
            self._console.warn(
                f"params are not finite at update {self._update}: not saved, what was saved before "
                "stays"
            )
            return
        self._saved = self._update
        self.saver.save(self._snapshot(params, evaluation))

    def _snapshot(self, params: PyTree, evaluation: Evaluation | None) -> Snapshot:
        facts = {
            "environment": environment_id(self._config),
            "version": hackmatrix.__version__,
            "timesteps": self._update * self._config.batch_size,
            begin.LAST_LOGGED: self._logged,
            EVALUATION: evaluation,
            resume.CONFIG: _plain(self._config),
        }
        return Snapshot(self._update, arrays_of(self._state), facts, params)

    def _finish(self) -> None:
        """Leaves a checkpoint of the end."""
        if self._update not in (self._saved, self._first):
            self._save()
        self.saver.wait()
        finished = self._update >= self._config.num_updates
        if finished and self._run.newest_params() != self._run.path / f"{FINAL}.npz":
            params = jax.device_get(self._trainer.network_params(self._state))
            self._export(self._snapshot(params, None))  # it was resumed at its end

    def _saved_to(self, snapshot: Snapshot, path: Path) -> None:
        self._export(snapshot)
        self._console.note("checkpoint", f"update {snapshot.update:,} saved to {path}")

    def _export(self, snapshot: Snapshot) -> None:
        """Writes params for sharing."""
        about = {
            "environment": snapshot.facts["environment"],
            "observation": self._config.observation,
            "version": snapshot.facts["version"],
            "update": snapshot.update,
            "timesteps": snapshot.facts["timesteps"],
            EVALUATION: snapshot.facts[EVALUATION],
            "config": snapshot.facts[resume.CONFIG],
        }
        names = [f"params_{snapshot.update}"]
        if snapshot.facts[EVALUATION] is not None:
            names.append(BEST)
        if snapshot.update >= self._config.num_updates:
            names.append(FINAL)
        for name in names:
            self._run.save_params(name, snapshot.params, about)

    def _save_failed(self, snapshot: Snapshot, error: OSError) -> None:
        self._console.warn(
            f"the checkpoint of update {snapshot.update:,} can't be written: {error.strerror}; "
            "what was saved before stays, training goes on"
        )


class _Calls(NamedTuple):
    """Compiled calls since the last row of metrics."""

    updates: int = 0
    seconds: float = 0.0


def _updates_per_call(seconds_per_update: float) -> int:
    if jax.default_backend() == "cpu":
        return 1
    return max(1, int(CALL_SECONDS / seconds_per_update))


def _debug_line(update: int, count: int, seconds: float) -> str:
    memory = [device.memory_stats() for device in jax.local_devices()]
    used = [each["bytes_in_use"] / 2**20 for each in memory if each and "bytes_in_use" in each]
    shown = f", {max(used):,.0f} MiB in use on the fullest device" if used else ""
    return f"call of {count} to update {update:,}: {seconds:.3f} s{shown}"


def _plain(config: TrainConfig) -> dict[str, Any]:
    settings = dataclasses.asdict(config)
    return {name: str(v) if isinstance(v, Path) else v for name, v in settings.items()}
