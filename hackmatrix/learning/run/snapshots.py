"""The state of a run as the named arrays of a checkpoint, and back: what a run starts with."""

import dataclasses
import datetime
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from hackmatrix.agents.networks.policy import shapes_by_name
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import DamagedError
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.compatibility import (
    Changes,
    changes_since,
    check_exported,
    check_shapes,
    check_symmetric,
)
from hackmatrix.learning.run.start import Start
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.runs.checkpoints import CheckedCheckpoint
from hackmatrix.runs.other_names import params_of_name
from hackmatrix.runs.params import Arrays, load_params

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
