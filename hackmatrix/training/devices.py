"""The devices of a run: one program on all of them, each with its own share of the games.

A function that runs on them sees the arrays of its own games, and the whole of everything else.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from hackmatrix.errors import UserError
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.minibatches import num_groups

Array = jax.Array

AXIS = "games"
SHARED = PartitionSpec(AXIS)  # of arrays with games first: each device has its own
SAME = PartitionSpec()  # of arrays that are the same everywhere


def mesh_of(devices: Sequence[jax.Device]) -> Mesh:
    """The devices in a row."""
    return jax.make_mesh((len(devices),), (AXIS,), (AxisType.Auto,), devices=devices)


def on_devices(
    rule: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, **jit_options: Any
) -> Any:
    """A jitted function in which each device works on its own share."""
    shares = jax.shard_map(rule, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    return jax.jit(shares, **jit_options)


def shardings(mesh: Mesh, specs: Any) -> Any:
    """Where arrays with these specs lie."""
    return jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        specs,
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )


def first_of_share(size: int) -> Array:
    """int32[], the number of the first of `size` things of this share; within the function."""
    return jax.lax.axis_index(AXIS) * size


def mean(tree: Any) -> Any:
    """Means over the shares, within the function."""
    return jax.lax.pmean(tree, AXIS)


def total(tree: Any) -> Any:
    """Sums over the shares, within the function."""
    return jax.lax.psum(tree, AXIS)


def highest(tree: Any) -> Any:
    """The largest of the shares, within the function."""
    return jax.lax.pmax(tree, AXIS)


def prepared(config: TrainConfig) -> list[jax.Device]:
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


def find(config: TrainConfig) -> tuple[list[jax.Device], list[str]]:
    """The devices to train on, and a line on whatever is not as the configuration wants it.

    Raises:
        UserError: no such device, fewer than asked for, or the games can't be shared among them.
    """
    notes = []
    devices = prepared(config)
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
    groups = num_groups(config.num_envs, config.num_steps, config.num_minibatches)
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
