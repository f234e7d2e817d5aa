"""The devices of a run: what JAX finds, and how many of them can share the games."""

import contextlib

import jax

from hackmatrix.errors import UserError
from hackmatrix.settings.config import TrainConfig


def available_devices(config: TrainConfig) -> list[jax.Device]:
    """JAX's devices, on CPU as many as are wanted.

    How many there are is settled by the first use of JAX's devices in the process.

    Raises:
        UserError: there are none of the kind that is wanted.
    """
    if config.device == "cpu":  # or JAX would take the accelerators too
        jax.config.update("jax_platforms", "cpu")
    if config.num_devices is not None and config.device in ("auto", "cpu"):
        with contextlib.suppress(RuntimeError):  # JAX has started: it has the devices it has
            jax.config.update("jax_num_cpu_devices", config.num_devices)
    try:
        return jax.devices() if config.device == "auto" else jax.devices(config.device)
    except RuntimeError:
        here = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise UserError(f"--device {config.device}: JAX finds none here, only {here}") from None


def choose_devices(config: TrainConfig) -> tuple[list[jax.Device], list[str]]:
    """The devices to train on, and a line on whatever is not as the configuration wants it.

    Raises:
        UserError: no such device, fewer than asked for, or the games can't be shared among them.
    """
    notes = []
    devices = available_devices(config)
    platform = devices[0].platform
    wanted = config.num_devices
    if platform == "tpu":
        wanted = wanted or config.tpu_cores
        if config.distributed:
            notes.append("--distributed: this version trains on one host, with all its chips")
    elif config.tpu or config.tpu_cores or config.distributed:
        notes.append(f"no TPU here, only {platform}: the settings of tpu change nothing")
    if wanted is None and platform == "cpu":
        wanted = 1
    if wanted is not None and wanted > len(devices):
        raise UserError(f"{wanted} devices are wanted, there are {len(devices)} ({platform})")
    groups = config.num_groups
    if wanted is not None and groups % wanted:
        fitting = max(n for n in range(1, wanted) if groups % n == 0)
        raise UserError(
            f"{wanted} devices can't share {config.num_envs:,} games evenly, {fitting} can: give "
            "another --num-devices or --num-envs"
        )
    count = wanted or max(n for n in range(1, len(devices) + 1) if groups % n == 0)
    if wanted is None and count < len(devices):
        notes.append(
            f"{count} of {len(devices)} devices are used: only so many can share "
            f"{config.num_envs:,} games evenly"
        )
    return devices[:count], notes
