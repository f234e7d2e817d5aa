"""Chooses the devices of a run from those that JAX finds."""

import contextlib

import jax

from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import RunConfig, TrainConfig


def set_up_devices(config: RunConfig, num_processes: int = 1) -> None:
    """Tells JAX which devices to make, as long as it has not been used in this process.

    On CPU those are as many as `config.num_devices` asks for.
    """
    if config.device == "cpu":  # otherwise JAX would reserve the accelerators too
        jax.config.update("jax_platforms", "cpu")
    if config.num_devices is not None and config.device in ("auto", "cpu"):
        with contextlib.suppress(RuntimeError):  # JAX has been used: its devices are fixed
            each = max(1, config.num_devices // num_processes)
            jax.config.update("jax_num_cpu_devices", each)


def available_devices(config: RunConfig, num_processes: int = 1) -> list[jax.Device]:
    """The devices that JAX finds in all processes, of the kind that `config.device` names.

    Raises:
        UserError: there is no device of that kind.
    """
    set_up_devices(config, num_processes)
    try:
        return jax.devices() if config.device == "auto" else jax.devices(config.device)
    except RuntimeError:
        here = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise UserError(f"--device {config.device}: JAX finds none here, only {here}") from None


def choose_devices(
    config: TrainConfig, num_processes: int = 1
) -> tuple[list[jax.Device], list[str]]:
    """The devices to train on, and a line of text for each setting that has no effect here.

    Args:
        config: settings.
        num_processes: processes that train together; each brings as many devices as the others.

    Raises:
        UserError: there are fewer devices than requested or none of their kind, or they can't
            share the games evenly.
    """
    devices = available_devices(config.run, num_processes)
    platform = devices[0].platform
    notes = _notes_on_tpu(config.run, platform)
    wanted = config.run.num_devices or (config.run.tpu_cores if platform == "tpu" else None)
    if wanted is None and platform == "cpu":
        wanted = num_processes
    if wanted is None:
        count = _most_that_share(config.num_groups, len(devices), num_processes)
        if 0 < count < len(devices):
            notes.append(
                f"{count} of {len(devices)} devices are used: more cannot share "
                f"{config.learning.num_envs:,} games evenly"
            )
        wanted = count or num_processes
    if wanted % num_processes:
        raise UserError(
            f"--num-devices {wanted} counts the devices of all {num_processes} processes: give a "
            "multiple"
        )
    if wanted > len(devices):
        raise UserError(f"{wanted} devices are wanted, there are {len(devices)} ({platform})")
    if config.num_groups % wanted:
        most = _most_that_share(config.num_groups, wanted)
        raise UserError(
            f"{wanted} devices cannot share {config.learning.num_envs:,} games evenly, "
            f"{most} can: give another --num-devices or --num-envs"
        )
    return _of_each_process(devices, wanted // num_processes, num_processes), notes


def _of_each_process(devices: list[jax.Device], count: int, num_processes: int) -> list[jax.Device]:
    """The first `count` devices of each process."""
    if num_processes == 1:
        return devices[:count]
    of_process: list[list[jax.Device]] = [[] for _ in range(num_processes)]
    for device in devices:
        of_process[device.process_index].append(device)
    if any(len(found) < count for found in of_process):
        found = ", ".join(str(len(found)) for found in of_process)
        raise UserError(f"each process needs {count} devices; they have {found}")
    return [device for found in of_process for device in found[:count]]


def _notes_on_tpu(config: RunConfig, platform: str) -> list[str]:
    if platform != "tpu" and (config.tpu or config.tpu_cores):
        return [f"no TPU here, only {platform}: the settings of tpu change nothing"]
    return []


def _most_that_share(groups: int, most: int, step: int = 1) -> int:
    """The largest multiple of `step`, at most `most`, that can share the groups; 0 if none can."""
    multiples = range(most // step * step, 0, -step)
    return next((count for count in multiples if groups % count == 0), 0)
