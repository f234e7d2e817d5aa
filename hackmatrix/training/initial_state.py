"""The first state of a run: fresh, from exported params, or from a checkpoint."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from hackmatrix.environments.registry import environment_id
from hackmatrix.errors import UserError
from hackmatrix.learner.trainer import Trainer, TrainState
from hackmatrix.reporting.console import Console
from hackmatrix.runs.checkpoints import Checkpoint, Facts
from hackmatrix.training import sources
from hackmatrix.training.snapshots import arrays_of, named_leaves, state_of

LAST_LOGGED = "last_logged"  # fact of a checkpoint: the update of the last row of metrics


class Begin(NamedTuple):
    """Where a run begins."""

    state: TrainState
    update: int  # updates made so far
    logged: int  # the update of the last row of metrics


def fresh(trainer: Trainer) -> Begin:
    """From the run's seed alone."""
    return Begin(trainer.init(trainer.config.seed), 0, 0)


def from_params(trainer: Trainer, path: Path, console: Console) -> Begin:
    """From params of a file; everything else is as in a fresh run.

    Raises:
        UserError: they can't be read, or belong to another network or environment.
    """
    config = trainer.config
    exported = sources.load_exported(path, config, environment_id(config.env))
    shape = jax.eval_shape(trainer.network.init, jax.random.key(0))
    theirs = _shapes(exported.params)
    if (ours := _shapes(shape)) != theirs:
        name = next(n for n in sorted(ours | theirs) if ours.get(n) != theirs.get(n))
        raise UserError(
            f"{path}: {name} is {theirs.get(name, 'missing')}, the network of this configuration "
            f"wants {ours.get(name, 'none')}; see --hidden-dim, --num-layers and --observation"
        )
    console.say(f"params of {path}; optimizer, normalisation, games and counters start afresh")
    state = _on_host(fresh(trainer).state)
    params = jax.tree.map(  # the same for every agent
        lambda like, array: np.broadcast_to(np.asarray(array, like.dtype), like.shape),
        state.params,
        exported.params,
    )
    state = dataclasses.replace(state, params=params)
    return Begin(trainer.on_devices(state), 0, 0)


def from_checkpoint(
    trainer: Trainer,
    checkpoint: Checkpoint,
    facts: Facts,
    console: Console,
    *,
    reset_optimizer: bool,
) -> Begin:
    """From a checkpoint: exactly where it was if the configuration is the same.

    Raises:
        UserError: it is damaged, or the network is another one; nothing was changed.
    """
    config, update = trainer.config, checkpoint.update
    changed = sources.changes(config, {"num_seeds": 1} | facts[sources.CONFIG])
    sources.check_environment(facts, environment_id(config.env), checkpoint.path)
    sources.check_network(changed)
    arrays = sources.load_arrays(checkpoint)
    _tell(console, checkpoint, changed, reset_optimizer=reset_optimizer)

    afresh = set()
    if "num_envs" in changed:
        afresh |= {"games", "sums"}
    if reset_optimizer:
        afresh.add("opt_state")
    if afresh:
        begun = arrays_of(trainer.init(config.seed, update))
        kept = {name: each for name, each in arrays.items() if name.split(".")[0] not in afresh}
        arrays = begun | kept
    seeds = config.seed + np.arange(config.num_seeds, dtype=np.uint32)
    arrays["seed"] = seeds.reshape(arrays["seed"].shape)
    state = state_of(trainer.state_shape(), arrays, checkpoint.path)
    logged = update if "sums" in afresh else facts[LAST_LOGGED]
    return Begin(trainer.on_devices(state), update, logged)


def _tell(
    console: Console,
    checkpoint: Checkpoint,
    changed: Mapping[str, tuple[Any, Any]],
    *,
    reset_optimizer: bool,
) -> None:
    console.say(f"resuming {checkpoint.path}, after update {checkpoint.update:,}")
    for name, (then, now) in changed.items():
        console.say(f"changed since: {name} {then} -> {now}")
    if "num_envs" in changed:
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
    if "normalize_rewards" in changed:
        console.warn("values were learned in other units; they take some updates to follow")


def _on_host(state: TrainState) -> TrainState:
    return jax.tree.map(np.array, state)


def _shapes(tree: Any) -> dict[str, list[int]]:
    return {name: list(leaf.shape) for name, leaf in named_leaves(tree)}
