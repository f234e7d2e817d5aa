"""Resolves the configuration of a run. Imports JAX only to auto-tune.

A setting is taken from the first of these that gives it: flags, the params from which a new run
starts, the file of --config, the resumed run, --auto-tune, the scaling for large batches, the
defaults.
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hackmatrix.agents.networks.architectures import (
    ALGORITHM_NAMES,
    MULTI_TASK,
    PPO,
    find_algorithm,
)
from hackmatrix.agents.roster.names import PACKAGED
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import flag
from hackmatrix.core.processes import num_cores
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.registry import environment_id
from hackmatrix.learning.algorithms.config import CONFIG_CLASSES, config_class
from hackmatrix.learning.settings.config import OPTIONS, RunConfig, TrainConfig
from hackmatrix.learning.settings.config_file import (
    BATCH_SIZE,
    Settings,
    with_num_minibatches,
)
from hackmatrix.learning.trainer.config import AlgorithmConfig

_ABOUT_DEVICES = ("device", "num_devices", "tpu_cores")


def resolve(
    flags: Mapping[str, Any],
    in_file: Mapping[str, Any] | None = None,
    resumed: Mapping[str, Any] | None = None,
    *,
    auto_tune: bool = False,
    params: Path | None = None,
) -> tuple[TrainConfig, list[str]]:
    """The configuration, and a line of text for each setting that was chosen automatically.

    Args:
        flags: the settings given on the command line.
        in_file: the settings in the file of --config, from `read_config`.
        resumed: the configuration of the resumed run; fields that this version does not have are
            ignored.
        auto_tune: whether to choose settings for the device.
        params: a file from which a new run starts, as from the one of `init_from`.

    Raises:
        UserError: a setting is not valid, or the params can't be read.
    """
    in_file, notes = _drop_replaced(in_file or {}, flags)
    explicit = {**in_file, **flags}
    if (agent := str(explicit.get("init_from"))) in PACKAGED:
        explicit["init_from"] = PACKAGED[agent]
    if resumed is not None:
        explicit = _resumed_settings(resumed, explicit) | explicit
    params = params or explicit.get("init_from")
    if params is not None and resumed is None:
        dictated, changed = _network_settings(params, explicit, flags)
        explicit |= dictated
        notes += [f"as in {params}: {name} {value}" for name, value in changed.items()]
    if auto_tune:
        tuned = {
            name: value for name, value in _auto_tune(explicit).items() if name not in explicit
        }
        notes += [f"tuned for this device: {name} {value}" for name, value in tuned.items()] or [
            "nothing to tune for this device: all of it is given"
        ]
        explicit = tuned | explicit
    if explicit.get("multi_task") and "architecture" not in explicit:
        notes.append(f"for --multi-task: architecture {MULTI_TASK}")
        explicit["architecture"] = MULTI_TASK
    algorithm = explicit.get("algorithm", PPO)
    _check_flags(flags, algorithm)
    if resumed is None and algorithm in ALGORITHM_NAMES:
        for name, value in find_algorithm(algorithm).settings.items():
            if name not in explicit:
                notes.append(f"for --algorithm {algorithm}: {name} {value}")
                explicit[name] = value
    explicit = with_num_minibatches(explicit)
    # Scaling comes first: only the scaled number must be a multiple of the accumulation steps.
    accumulation = explicit.pop("gradient_accumulation_steps", 1)
    config = TrainConfig.of(**explicit)
    learning, scaled = auto_scale_for_batch_size(config.learning, explicit, accumulation)
    notes += [f"scaled for the batch of {learning.batch_size:,}: {each}" for each in scaled]
    return dataclasses.replace(config, learning=learning), notes


def _check_flags(flags: Mapping[str, Any], algorithm: str) -> None:
    """Raises `UserError` if one of the flags is a setting of other algorithms alone.

    In a file it may stand: a file of all settings is that of any algorithm.
    """
    fields = config_class(algorithm).__dataclass_fields__
    for name in flags:
        owners = [
            each for each in CONFIG_CLASSES if name in CONFIG_CLASSES[each].__dataclass_fields__
        ]
        if owners and name not in fields:
            raise UserError(f"{flag(name)} goes with --algorithm {' or '.join(owners)}")


def _drop_replaced(
    in_file: Mapping[str, Any], flags: Mapping[str, Any]
) -> tuple[Settings, list[str]]:
    """The settings of a file without those that flags of other names replace."""
    replaced = {}
    if flags.get("multi_task"):
        replaced["env"] = "--multi-task"
    elif "env" in flags:
        replaced |= dict.fromkeys(("multi_task", "task_list"), "--env")
        if environment_id(flags["env"]) != ENVIRONMENT_ID:
            replaced |= dict.fromkeys(("curriculum", "curriculum_start_level"), "--env")
    elif flags.get("curriculum") is not None:  # its levels are starts of HackMatrix
        replaced["env"] = "--curriculum"
    notes = [
        f"{flag} replaces {name} {in_file[name]} of the file"
        for name, flag in replaced.items()
        if in_file.get(name, OPTIONS[name].default) != OPTIONS[name].default
    ]
    return {name: value for name, value in in_file.items() if name not in replaced}, notes


def _network_settings(
    params: Path, explicit: Mapping[str, Any], flags: Mapping[str, Any]
) -> tuple[Settings, Settings]:
    """The settings of the network in a file that no flag gives, and those of them that differ."""
    from hackmatrix.agents.networks.policy import settings_of_params

    dictated = {n: value for n, value in settings_of_params(params).items() if n not in flags}
    changed = {
        name: value
        for name, value in dictated.items()
        if value != explicit.get(name, OPTIONS[name].default)
    }
    return dictated, changed


def _resumed_settings(resumed: Mapping[str, Any], explicit: Mapping[str, Any]) -> Settings:
    """The resumed run's settings that this version knows and that `explicit` does not override."""
    # How many processes train is a matter of the command.
    replaced = {*explicit, "distributed"} | (
        {"num_minibatches"} if BATCH_SIZE in explicit else set()
    )
    settings = {}
    for name, value in resumed.items():
        if name in OPTIONS and name not in replaced:
            try:
                settings[name] = OPTIONS[name].convert(value)
            except ValueError as error:
                raise UserError(f"{name} of the resumed run {error}") from None
    return settings


def _auto_tune(explicit: Mapping[str, Any]) -> Settings:
    from hackmatrix.learning.settings.devices import available_devices

    wanted = RunConfig(**{name: explicit[name] for name in _ABOUT_DEVICES if name in explicit})
    found = available_devices(wanted)
    count = wanted.num_devices or (wanted.tpu_cores if found[0].platform == "tpu" else None)
    return settings_for(found[0].platform, count or len(found))


# --- Chooses settings for the device that JAX finds -----------------------------------------------


def settings_for(platform: str, num_devices: int) -> dict[str, Any]:
    """Number of games and steps, and the precision, for `num_devices` devices of a platform.

    The number of games is chosen to keep a device busy: on CPU the speed stops growing at about
    2,048 games (docs/performance.md); accelerators take thousands more, with fewer steps, so that a
    batch stays below a million transitions per device. The number of minibatches follows from the
    batch, see `auto_scale_for_batch_size`. Accelerators are built for bfloat16 products; CPUs gain
    nothing from them.
    """
    if platform == "cpu":
        return {
            "num_envs": 2048 if num_cores() > 1 else 1024,
            "num_steps": 128,
            "dtype": "float32",
        }
    games, steps = {"tpu": (2048, 128), "gpu": (8192, 64)}.get(platform, (2048, 128))
    return {"num_envs": games * num_devices, "num_steps": steps, "dtype": "bfloat16"}


# --- Settings for large batches: more minibatches, fewer epochs, a lower learning rate ------------


REFERENCE_BATCH = 256 * 128  # transitions; the next three constants were chosen for it
REFERENCE_MINIBATCHES = 4
REFERENCE_EPOCHS = 4
REFERENCE_LR = 2.5e-4
MIN_EPOCHS = 2  # with one, each rare event is used only once


def auto_scale_for_batch_size(
    config: AlgorithmConfig, explicit: Collection[str] = (), accumulation: int = 1
) -> tuple[AlgorithmConfig, list[str]]:
    """Keeps minibatches near 8,192 transitions, and the policy change per update constant.

    For a batch of k >= 2 whole reference batches: k times the minibatches (or the next smaller
    divisor of the batch), epochs divided by k but at least 2, and the learning rate divided by the
    growth of the number of gradient steps.

    Args:
        config: the settings to scale.
        explicit: fields that the user has set; they are kept.
        accumulation: number of minibatches per gradient step; set in the result.

    Returns:
        The scaled configuration, and a line about each change.
    """
    factor = config.batch_size // REFERENCE_BATCH
    if factor < 2:
        return dataclasses.replace(config, gradient_accumulation_steps=accumulation), []
    minibatches, epochs, lr = config.num_minibatches, config.update_epochs, config.lr
    if "num_minibatches" not in explicit:
        minibatches = _divisor(config.batch_size, REFERENCE_MINIBATCHES * factor)
    if "update_epochs" not in explicit:
        epochs = max(MIN_EPOCHS, REFERENCE_EPOCHS // factor)
    if "lr" not in explicit:
        steps = minibatches / accumulation * epochs
        growth = steps / (REFERENCE_MINIBATCHES * REFERENCE_EPOCHS)
        lr = REFERENCE_LR / max(growth, 1.0)
    result = dataclasses.replace(
        config,
        num_minibatches=minibatches,
        update_epochs=epochs,
        lr=lr,
        gradient_accumulation_steps=accumulation,
    )
    notes = [
        f"{name} {getattr(config, name):g} -> {getattr(result, name):g}"
        for name in ("num_minibatches", "update_epochs", "lr")
        if getattr(config, name) != getattr(result, name)
    ]
    if (size := config.batch_size // minibatches) > 2 * REFERENCE_BATCH // REFERENCE_MINIBATCHES:
        notes.append(f"minibatches of {size:,} transitions are large, but num_minibatches is given")
    return result, notes


def _divisor(dividend: int, most: int) -> int:
    """The largest divisor of `dividend` that is at most `most`."""
    return next(d for d in range(min(most, dividend), 0, -1) if dividend % d == 0)
