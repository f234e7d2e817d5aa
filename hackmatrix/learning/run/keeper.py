"""Saves checkpoints and exported params of a run, and tracks the best evaluation."""

import dataclasses
import datetime
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import jax
import numpy as np

from hackmatrix.agents.networks.policy import shapes_by_name
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import DamagedError
from hackmatrix.core.version import __version__
from hackmatrix.environments.registry import environment_id
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.checkpoint_params import params_of
from hackmatrix.learning.run.compatibility import (
    Changes,
    changes_since,
    check_exported,
    check_shapes,
    check_symmetric,
)
from hackmatrix.learning.run.start import Start
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer import keys
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.runs import exports
from hackmatrix.runs.checkpoints import (
    CheckedCheckpoint,
    Evaluation,
    Facts,
    best_checkpoint,
    check_checkpoint,
)
from hackmatrix.runs.folder import LostFolderError, RunFolder
from hackmatrix.runs.other_names import params_of_name
from hackmatrix.runs.params import Arrays, load_params
from hackmatrix.runs.saver import Saver, Snapshot
from hackmatrix.runs.trackers import Trackers

# Arrays that older checkpoints may lack: they start at zero.
_MAY_BE_MISSING = ("sums.", "games.previous_mask")


def arrays_of(state: TrainState) -> Arrays:
    """Copies of all arrays of a state, named by the path of their fields joined by dots.

    They are copied because a CPU array may share its memory with NumPy's, and the next call reuses
    it.
    """
    return {name: np.array(leaf) for name, leaf in named_leaves(state)}


def state_of(shape: TrainState, arrays: Arrays, path: Path) -> TrainState:
    """Rebuilds a state of NumPy arrays from the result of `arrays_of`.

    Sums that older versions did not have start at zero.

    Args:
        shape: shapes and dtypes of the state.
        arrays: arrays by name.
        path: the checkpoint's path, for error messages.

    Raises:
        UserError: an array is missing, or has another shape or dtype.
    """
    leaves = []
    for name, wanted in named_leaves(shape):
        array = arrays.get(name)
        if array is None and name.startswith(_MAY_BE_MISSING):
            array = np.zeros(wanted.shape, wanted.dtype)
        if array is None:
            raise UserError(f"{path}: holds no {name}; another version of hackmatrix wrote it")
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise UserError(
                f"{path}: {name} is {_text(array)}, this configuration wants {_text(wanted)}"
            )
        leaves.append(array)
    return jax.tree.unflatten(jax.tree.structure(shape), leaves)


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a pytree, each with the path of its fields joined by dots.

    The fields of an algorithm's state stand beside those of the trainer's; one field is stored
    under its old name.
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    names = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves)
    return [(_stored_name(name), leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]


def _stored_name(name: str) -> str:
    return name.removeprefix("learner.").replace("games.information.", "games.known.")


def _text(array: Any) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


# --- The state of a run between two updates -------------------------------------------------------


class LoopState(NamedTuple):
    """The trainer's state and the host's counters, between two updates."""

    train: TrainState
    update: int  # number of updates since the run's start
    last_logged: int  # update of the last row of metrics; `train.sums` cover the updates after it


# --- The initial state of a run: new, with exported params, or from a checkpoint ------------------


def make_initial_state(
    trainer: Trainer,
    config: TrainConfig,
    start: Start,
    console: Console,
    *,
    reset_optimizer: bool,
) -> LoopState:
    """The state in which a run starts, on the trainer's devices.

    Args:
        trainer: the run's trainer.
        config: the run's settings.
        start: where the run starts.
        console: shows what is restored and what is not.
        reset_optimizer: whether to reset the optimizer state of a checkpoint.

    Raises:
        UserError: a file is damaged or does not fit the configuration; nothing was changed.
    """
    if start.checkpoint is not None:
        return _of_checkpoint(
            trainer, config, start.checkpoint, console, reset_optimizer=reset_optimizer
        )
    if start.run is not None:
        console.say(f"{start.run} has no checkpoint yet: it starts from its beginning")
    path = start.params or config.run.init_from
    if path is not None:
        return _with_params(trainer, config, path, console)
    return LoopState(trainer.start(trainer.agents[0]), 0, 0)


def _with_params(trainer: Trainer, config: TrainConfig, path: Path, console: Console) -> LoopState:
    """A new state with the params of a file for every agent.

    Raises:
        UserError: they can't be read, or belong to another network or environment.
    """
    exported = load_params(params_of_name(path))
    check_exported(exported, config)
    network = jax.eval_shape(trainer.network.init, jax.random.key(0))
    check_shapes(shapes_by_name(exported.params), shapes_by_name(network), path)
    check_symmetric(trainer.network, exported.params, path)
    console.say(f"params of {path}; optimizer, normalisation, games and counters start afresh")
    new = trainer.start(trainer.agents[0])
    state = jax.tree.map(np.array, trainer.gathered(new))
    params = jax.tree.map(
        lambda like, array: np.broadcast_to(np.asarray(array, like.dtype), like.shape),
        state.params,
        exported.params,
    )
    averages = None if state.averages is None else params
    learner = state.learner.replace(params=params)
    state = dataclasses.replace(state, learner=learner, averages=averages)
    return LoopState(trainer.on_devices(state), 0, 0)


def _of_checkpoint(
    trainer: Trainer,
    config: TrainConfig,
    checkpoint: CheckedCheckpoint,
    console: Console,
    *,
    reset_optimizer: bool,
) -> LoopState:
    """The state of a checkpoint, restored exactly if the configuration is unchanged.

    Raises:
        UserError: its params don't fit the configuration's network or environment.
        DamagedError: its games are not legal.
    """
    facts = checkpoint.facts
    changes = changes_since(facts, config, checkpoint.path)
    arrays = checkpoint.read_arrays()
    _tell(console, checkpoint, changes, reset_optimizer=reset_optimizer)

    of_games = {"games", *trainer.algorithm.PER_GAME}
    afresh = of_games if {"num_envs", "curriculum"} & changes.keys() else set()
    if {"curriculum", "curriculum_start_level"} & changes.keys():
        afresh.add("progress")
    if reset_optimizer:
        afresh.add("opt_state")
    if afresh:
        new = arrays_of(trainer.gathered(trainer.init(trainer.agents[0], facts.update)))
        kept = {name: array for name, array in arrays.items() if name.split(".")[0] not in afresh}
        arrays = new | kept
    if trainer.config.params_average is not None and facts.config.get("params_average") is None:
        arrays |= {
            name.replace("params.", "averages.", 1): array
            for name, array in arrays.items()
            if name.startswith("params.")
        }
    seeds = np.array(trainer.agents, np.uint32)
    arrays["seed"] = seeds.reshape(arrays["seed"].shape)
    state = state_of(trainer.state_shape(portable=True), arrays, checkpoint.path)
    try:
        state = jax.block_until_ready(trainer.on_devices(state))
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        _, is_illegal, reason = str(error).partition("INVALID_ARGUMENT: ")
        if not is_illegal:
            raise
        raise DamagedError(f"{checkpoint.path} is damaged: {reason}") from None
    return LoopState(state, facts.update, facts.last_logged)


def _tell(
    console: Console, checkpoint: CheckedCheckpoint, changes: Changes, *, reset_optimizer: bool
) -> None:
    console.say(f"resuming {checkpoint.path}, after update {checkpoint.facts.update:,}")
    for name, (then, now) in changes.items():
        values = "" if name == "curriculum" else f" {then} -> {now}"
        console.say(f"changed since: {name}{values}")
    if "curriculum" in changes:
        console.say("the games are others and start anew, at the curriculum's start level")
    if "num_envs" in changes:
        console.say(
            "params, optimizer and normalisation carry over; the games are others and start anew"
        )
        if not reset_optimizer:
            console.warn(
                "the optimizer's state is poorly calibrated for another number of games; "
                "--reset-optimizer starts it afresh"
            )
    if reset_optimizer:
        console.say("the optimizer starts afresh")
    if "normalize_rewards" in changes:
        console.warn("values were learned in other units; they take some updates to follow")


# --- The facts that a run's folder records of each process that trains it -------------------------


def start_facts(update: int, devices: list[jax.Device]) -> dict[str, Any]:
    """The facts that the folder records for each process of the run, see `RunFolder.add_start`."""
    return {
        "update": update,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "devices": len(devices),
        **machine.machine(),
        "versions": machine.versions("jaxlib", "numpy", "flax", "optax", "orbax-checkpoint"),
        "commit": machine.commit(),
    }


class Keeper:
    """Saves a run while training continues; a context manager that waits until all is written."""

    def __init__(
        self,
        run: RunFolder,
        config: TrainConfig,
        trainer: Trainer,
        course: Course,
        console: Console,
        trackers: Trackers,
    ) -> None:
        """Starts the thread that saves; nothing is saved yet."""
        self._folder = run
        self._run = run.path
        self._trainer = trainer
        self._config = config
        self._course = course
        self._console = console
        self._trackers = trackers
        self._saver = Saver(
            run.path,
            config.run.keep_checkpoints,
            check=run.check,
            settle_metrics=run.settle_metrics,
            on_saved=self._report_saved,
            on_failed=self._tell_failure,
        )
        self._last_update: int | None = None  # the update of the last checkpoint
        self._last_time = time.perf_counter()
        self._any_finite = True  # whether any agent's params were finite at the last save
        self._failed = False  # whether final or best params, or rows, could not be written
        self._broken: set[int] = set()  # seeds of agents already reported as not finite

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._saver.__exit__(exc_type, error, trace)
        if exc_type is None:
            self._folder.check()
            self._folder.remove_partial()
            self._settle_metrics()
            if not self._saver.is_best_kept:
                self._console.warn(
                    "the best params could not be kept; --resume makes them again, from the newest "
                    "checkpoint on"
                )

    @property
    def seconds_since_save(self) -> float:
        """Seconds since the last checkpoint, or since the start of this process."""
        return time.perf_counter() - self._last_time

    @property
    def is_saved(self) -> bool:
        """Whether the end of the run was saved completely; valid after the context."""
        return self._any_finite and not self._saver.has_failed and not self._failed

    def is_best(self, score: float) -> bool:
        """Whether a score is finite and better than all before."""
        return self._saver.is_best(score)

    def keep_first(self, first: LoopState, start: Start) -> None:
        """Makes sure that the folder holds the state from which the run resumes.

        Args:
            first: the initial state.
            start: where the run starts.
        """
        if (facts := start.facts_in(self._run)) is None:
            self.keep(first)
            return
        self._last_update = first.update
        # A kill may have come after the checkpoint was written and before its params.
        params = self._finite(self.agents_params(first))
        self._folder.check()
        exports.export_params(self._run, facts, params)
        if not exports.export_best(self._run):
            self._make_best()
        self._saver.remove_old()  # a kill may have come before that too

    def keep(self, now: LoopState, evaluation: Evaluation | None = None) -> None:
        """Copies the state to the host and starts to save it in the background.

        Args:
            now: the run between two updates.
            evaluation: the evaluation of this update, if it is the best so far.
        """
        self._last_time = time.perf_counter()
        self._last_update = now.update
        if (snapshot := self._snapshot(now, evaluation)) is not None:
            self._saver.save(snapshot)

    def finish(self, now: LoopState) -> None:
        """Saves a checkpoint of the run's end, and waits until it is written."""
        if now.update > 0 and now.update != self._last_update:
            self.keep(now)
        self._saver.wait()
        if now.update >= self._course.num_updates:
            try:
                self._export_final(now)
            except LostFolderError:
                raise
            except OSError as error:
                self._failed = True
                self._console.warn(f"final_params can't be written: {error.strerror or error}")

    def is_any_finite(self, now: LoopState) -> bool:
        """Whether the params of any agent are finite."""
        return any(params is not None for params in self._finite(self.agents_params(now)))

    def agents_params(self, now: LoopState) -> list[Any]:
        """The params of each agent, with the feature normalisation folded in."""
        params = jax.device_get(self._trainer.network_params(now.train))
        return keys.split(params, len(self._config.run.seeds))

    def _make_best(self) -> None:
        """Exports the params of the best checkpoint, which are missing, from its arrays."""
        best = best_checkpoint(self._run)
        assert best is not None
        try:
            checkpoint = check_checkpoint(best.path)
            agents = params_of(checkpoint, checkpoint.read_arrays())
        except UserError as error:
            self._failed = True
            self._console.warn(f"the best params can't be made again: {error}")
            return
        exports.export_params(self._run, checkpoint.facts, [each.params for each in agents])
        exports.export_best(self._run)

    def _export_final(self, now: LoopState) -> None:
        if not exports.is_exported(self._run, now.update):  # its checkpoint was not written
            params = self._finite(self.agents_params(now))
            self._folder.check()
            exports.export_params(self._run, self._facts(now), params)
        self._folder.check()
        exports.export_final(self._run, now.update)

    def _settle_metrics(self) -> None:
        """Writes the rows of metrics that still wait; warns if they can't be written."""
        try:
            self._folder.settle_metrics()
        except LostFolderError:
            raise
        except OSError as error:
            self._failed = True
            self._console.warn(
                f"the last rows of metrics can't be written: {error.strerror}; --resume makes them "
                "again"
            )

    def _snapshot(self, now: LoopState, evaluation: Evaluation | None) -> Snapshot | None:
        """The state copied to the host; None if no agent's params are finite."""
        params = self._finite(self.agents_params(now))
        self._any_finite = any(each is not None for each in params)
        if not self._any_finite:
            self._console.warn(
                f"params are not finite at update {now.update}: not saved, what was saved before "
                "stays"
            )
            return None
        self._warn_broken(now.update, params)
        arrays = arrays_of(self._trainer.gathered(now.train))
        return Snapshot(arrays, self._facts(now, evaluation), params)

    def _facts(self, now: LoopState, evaluation: Evaluation | None = None) -> Facts:
        return Facts(
            update=now.update,
            timesteps=self._course.timesteps(now.update),
            last_logged=now.last_logged,
            environment=environment_id(self._config.environment.name),
            version=__version__,
            config=self._config.as_dict(),
            evaluation=evaluation,
        )

    def _finite(self, agents: Sequence[Any]) -> list[Any | None]:
        """The params of each agent; None for agents whose params are not finite."""
        return [params if keys.are_finite(params) else None for params in agents]

    def _warn_broken(self, update: int, agents: Sequence[Any | None]) -> None:
        """Warns once about each agent whose params are not finite."""
        seeds_of_agents = zip(self._config.run.seeds, agents, strict=True)
        broken = {seed for seed, params in seeds_of_agents if params is None}
        for seed in sorted(broken - self._broken):
            self._console.warn(
                f"seed {seed}: params are not finite at update {update}: not exported; the other "
                "agents go on"
            )
        self._broken |= broken

    def _report_saved(self, facts: Facts, files: list[Path]) -> None:
        self._console.note("checkpoint", f"update {facts.update:,} saved to {files[0]}")
        self._trackers.artifact(facts.update, files)

    def _tell_failure(self, failure: str, error: OSError) -> None:
        self._console.warn(
            f"{failure}: {error.strerror or error}; what was saved before stays, training goes on"
        )
