"""Checks whether an earlier run's checkpoint or params fit the configuration."""

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hackmatrix.agents.networks.architectures import PPO, NetworkConfig
from hackmatrix.agents.networks.network import Network, sharing_of
from hackmatrix.core.errors import UserError
from hackmatrix.environments.config import EnvironmentConfig
from hackmatrix.environments.registry import environment_id
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.runs.checkpoints import Facts
from hackmatrix.runs.params import Exported

Changes = dict[str, tuple[Any, Any]]  # setting -> (then, now)

# Another precision of the products reads the same params.
_OF_NETWORK = ("observation", *(f.name for f in fields(NetworkConfig) if f.name != "dtype"))


def changes_since(facts: Facts, config: TrainConfig, path: Path) -> Changes:
    """The settings that differ from those of a checkpoint.

    Args:
        facts: the facts of the checkpoint.
        config: settings of the run that resumes it.
        path: the checkpoint's path, for error messages.

    Raises:
        UserError: the params can't be used, because the environment, the network or the number of
            agents differs.
    """
    _check_environment(facts.environment, config.environment, path)
    absent = {
        "num_seeds": facts.num_agents,
        "curriculum": None,
        "curriculum_start_level": 1,
        "algorithm": PPO,
        "params_average": None,
        "final_shaping": None,
        "symmetric": False,
        "value": "return",
    }
    before = absent | facts.config  # older versions lack some
    settings = config.as_dict()
    now = {name: settings[name] for name in before if name in settings and name != "env"}
    changes = {name: (before[name], now[name]) for name in now if before[name] != now[name]}
    _check_network(changes, facts.num_agents)
    return changes


def check_exported(exported: Exported, config: TrainConfig, *, any_value: bool = False) -> None:
    """Checks that exported params belong to the configuration's environment and network.

    Args:
        exported: the params.
        config: settings of the run that starts from them.
        any_value: whether their value may be of another kind, as it is learned anew.

    Raises:
        UserError: their environment or activation differs, or features are to be normalised.
    """
    about, path = exported.about, exported.path
    if "environment" in about:  # files from other programs may lack it
        _check_environment(about["environment"], config.environment, path)
    settings = about.get("config", {})
    ours = vars(config.network)
    of_old = {"value": NetworkConfig.value}  # files of older versions lack it
    names = ("architecture", "activation", *(() if any_value else ("value",)))
    for name in names:
        if (theirs := settings.get(name, of_old.get(name, ours[name]))) != ours[name]:
            raise UserError(f"{path}: was trained with --{name} {theirs}")
    if config.learning.normalize_observations:
        raise UserError(
            f"{path}: exported params read observations as they are; leave "
            "--normalize-observations off"
        )


def check_shapes(
    theirs: Mapping[str, list[int]], ours: Mapping[str, list[int]], path: Path
) -> None:
    """Checks that the arrays of a file have the shapes of the configuration's network.

    Args:
        theirs: shapes by name, of the file.
        ours: shapes by name, of the network.
        path: the file's path, for error messages.

    Raises:
        UserError: an array is missing, unexpected or has another shape; the message names it.
    """
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            raise UserError(
                f"{path}: {name} is {theirs.get(name, 'missing')}, the network of this "
                f"configuration wants {ours.get(name, 'none')}; see --hidden-dim, --num-layers, "
                "--layer-norm and --observation"
            )


def check_symmetric(network: Network, params: Any, path: Path) -> None:
    """Checks that params have equal weights where the network shares them.

    Raises:
        UserError: they have not, as the network that learned them is not symmetric.
    """
    shared = sharing_of(network).share(params)
    is_close = partial(np.allclose, rtol=1e-3, atol=1e-5)  # averages may be rounded apart
    if not jax.tree.all(jax.tree.map(is_close, params, shared)):
        raise UserError(f"{path}: was trained without --symmetric; leave it off")


def _check_environment(trained_on: str, config: EnvironmentConfig, path: Path) -> None:
    """Raises `UserError` for another environment, or another version of it."""
    if trained_on != (environment := environment_id(config.name)):
        raise UserError(f"{path}: was trained on {trained_on}, not on {environment}")


def _check_network(changes: Changes, num_agents: int) -> None:
    for name in _OF_NETWORK:
        if name in changes:
            then, now = changes[name]
            raise UserError(
                f"{name} was {then} in the checkpoint and is {now} now: the network's params "
                f"don't fit, so nothing would carry over; leave {name} as it was, or start afresh"
            )
    if "algorithm" in changes:
        then, now = changes["algorithm"]
        raise UserError(
            f"the checkpoint was trained with --algorithm {then}, not {now}: leave it as it was; a "
            "new run can start from its params (--resume FILE.npz)"
        )
    if "num_seeds" in changes:
        then, now = changes["num_seeds"]
        raise UserError(
            f"the checkpoint holds {then} agents, --num-seeds asks for {now}: leave it as it was; "
            "a new run can start from the params of one of them (--resume FILE.npz)"
        )
    if "seed" in changes and num_agents > 1:
        then, now = changes["seed"]
        raise UserError(
            f"the checkpoint holds the {num_agents} agents of seed {then} and on, --seed asks for "
            f"{now}: leave it as it was; --resume FILE.npz starts new agents from the params of one"
        )
    if "normalize_observations" in changes:
        then, now = (("off", "on")[value] for value in changes["normalize_observations"])
        raise UserError(
            f"--normalize-observations was {then} in the checkpoint and is {now} now: its network "
            "would read other numbers than it has learned to; leave it as it was"
        )
