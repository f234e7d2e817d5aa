"""The loop of a training run: compiled updates, and what is due between them."""

import dataclasses
import time
from pathlib import Path
from typing import NamedTuple

import jax

import hackmatrix
from hackmatrix import ENVIRONMENT_ID
from hackmatrix.agents.environment import Environment
from hackmatrix.runs.folder import RunFolder
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.console import Console
from hackmatrix.training.measures import Measures
from hackmatrix.training.metrics import summarise
from hackmatrix.training.stop import StopRequest
from hackmatrix.training.trainer import Trainer, TrainState

CALL_SECONDS = 1.0  # of one compiled call: signals and the display wait for its end


class Outcome(NamedTuple):
    """How a run ended."""

    params: Path  # the newest exported params
    updates: int
    finished: bool  # False: stopped by a signal


def train(config: TrainConfig, env: Environment | None = None) -> Outcome:
    """Trains by `config` to its end or to a signal, and exports the params.

    Args:
        config: settings, as they are to be used (see `auto_scale_for_batch_size`).
        env: what to train on; by default HackMatrix as `config` wants it.

    Raises:
        UserError: the run's folder can't be made.
    """
    if env is None:
        env = hackmatrix.make(
            observation=config.observation, max_episode_steps=config.max_episode_steps
        )
    trainer = Trainer(env, config)
    run = RunFolder.create(
        config.checkpoint_dir, config.run_name, config.run_suffix, dataclasses.asdict(config)
    )
    with (
        Console(config.num_updates, config.batch_size) as console,
        StopRequest(lambda: console.say("stopping after this update; once more: at once")) as stop,
    ):
        console.say(f"run {run.path}")
        console.say(f"compiling for {jax.devices()[0].device_kind} ...")
        began = time.perf_counter()
        state = jax.block_until_ready(trainer.run(trainer.init(config.seed), 0))
        console.say(f"compiled in {time.perf_counter() - began:.1f} s, training")
        state = _train(trainer, state, run, console, stop)
    return _export(run, config, state)


class _Interval(NamedTuple):
    """Updates between two lines of metrics."""

    update: int  # the last one
    updates: int
    seconds: float
    sums: Measures


def _train(
    trainer: Trainer, state: TrainState, run: RunFolder, console: Console, stop: StopRequest
) -> TrainState:
    config = trainer.config
    update = logged = 0
    logged_at = time.perf_counter()
    ahead = 1  # updates of the next call
    finished: _Interval | None = None

    def finish_interval() -> _Interval:
        nonlocal state, logged, logged_at
        state, sums = trainer.take_sums(state)
        now = time.perf_counter()
        interval = _Interval(update, update - logged, now - logged_at, sums)
        logged, logged_at = update, now
        return interval

    while update < config.num_updates and not stop.requested:
        count = min(ahead, logged + config.log_interval - update, config.num_updates - update)
        began = time.perf_counter()
        state = trainer.run(state, count)
        if finished is not None:  # while the device works
            _log(finished, config, run, console)
            finished = None
        jax.block_until_ready(state.update)
        ahead = _updates_per_call((time.perf_counter() - began) / count)
        update += count
        console.advance(update)
        if update - logged == config.log_interval:
            finished = finish_interval()
    if update > logged:
        finished = finish_interval()
    if finished is not None:
        _log(finished, config, run, console)
    return state


def _updates_per_call(seconds_per_update: float) -> int:
    if jax.default_backend() == "cpu":
        return 1
    return max(1, int(CALL_SECONDS / seconds_per_update))


def _log(interval: _Interval, config: TrainConfig, run: RunFolder, console: Console) -> None:
    row = summarise(jax.device_get(interval.sums))
    steps = interval.updates * config.batch_size
    row["train/steps_per_second"] = steps / interval.seconds
    row["train/learning_rate"] = config.lr
    timesteps = interval.update * config.batch_size
    run.add_metrics({"update": interval.update, "timesteps": timesteps, **row})
    console.log(interval.update, row)


def _export(run: RunFolder, config: TrainConfig, state: TrainState) -> Outcome:
    update = int(state.update)
    params = jax.device_get(state.params)
    about = {
        "environment": ENVIRONMENT_ID,
        "observation": config.observation,
        "version": hackmatrix.__version__,
        "update": update,
        "timesteps": update * config.batch_size,
    }
    path = run.save_params(f"params_{update}", params, about)
    finished = update >= config.num_updates
    if finished:
        path = run.save_params("final_params", params, about)
    return Outcome(path, update, finished)
