"""Chooses the devices of a run from those that JAX finds."""

import contextlib
import os

import jax

from hackmatrix.errors import UserError
from hackmatrix.settings.config import TrainConfig


def num_cores() -> int:
    """Number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS or Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_devices(config: TrainConfig) -> list[jax.Device]:
    """The devices that JAX finds, of the kind that `config.device` names.

    On CPU JAX creates as many as `config.num_devices` asks for, unless JAX has already been used in
    this process: the first use fixes the number.

    Raises:
        UserError: there is no device of that kind.
    """
    if config.device == "cpu":  # otherwise JAX would reserve the accelerators too
        jax.config.update("jax_platforms", "cpu")
    if config.num_devices is not None and config.device in ("auto", "cpu"):
        with contextlib.suppress(RuntimeError):  # JAX has been used: its devices are fixed
            jax.config.update("jax_num_cpu_devices", config.num_devices)
    try:
        return jax.devices() if config.device == "auto" else jax.devices(config.device)
    except RuntimeError:
        here = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise UserError(f"--device {config.device}: JAX finds none here, only {here}") from None


def choose_devices(config: TrainConfig) -> tuple[list[jax.Device], list[str]]:
    """The devices to train on, and a line of text for each setting that has no effect here.

    Raises:
        UserError: there are fewer devices than requested or none of their kind, or they can't
            share the games evenly.
    """
    devices = available_devices(config)
    platform = devices[0].platform
    notes = _notes_on_tpu(config, platform)
    wanted = config.num_devices or (config.tpu_cores if platform == "tpu" else None)
    if wanted is None and platform == "cpu":
        wanted = 1
    if wanted is None:
        count = _most_that_share(config.num_groups, len(devices))
        if count < len(devices):
            notes.append(
                f"{count} of {len(devices)} devices are used: more cannot share "
                f"{config.num_envs:,} games evenly"
            )
        return devices[:count], notes
    if wanted > len(devices):
        raise UserError(f"{wanted} devices are wanted, there are {len(devices)} ({platform})")
    if config.num_groups % wanted:
        raise UserError(
            f"{wanted} devices cannot share {config.num_envs:,} games evenly, "
            f"{_most_that_share(config.num_groups, wanted)} can: give another --num-devices or "
            "--num-envs"
        )
    return devices[:wanted], notes


def _notes_on_tpu(config: TrainConfig, platform: str) -> list[str]:
    if platform == "tpu" and config.distributed:
        return ["--distributed: this version trains on one host, with all its chips"]
    if platform != "tpu" and (config.tpu or config.tpu_cores or config.distributed):
        return [f"no TPU here, only {platform}: the settings of tpu change nothing"]
    return []


def _most_that_share(groups: int, most: int) -> int:
    """The largest number of devices, at most `most`, that can share `groups` groups of games."""
    return next(count for count in range(most, 0, -1) if groups % count == 0)
