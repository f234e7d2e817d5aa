"""The device mesh: one program runs on all devices, each with its own shard of the games.

A function run by `on_devices` sees its device's shard of sharded arrays and all of replicated ones.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

Array = jax.Array

AXIS = "games"
SHARDED = PartitionSpec(AXIS)  # spec of arrays with games first, split over the devices
REPLICATED = PartitionSpec()  # spec of arrays that are the same on all devices


def mesh_of(devices: Sequence[jax.Device]) -> Mesh:
    """A mesh of the devices with one axis, `AXIS`."""
    return jax.make_mesh((len(devices),), (AXIS,), (AxisType.Auto,), devices=devices)


def on_devices(
    rule: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, **jit_options: Any
) -> Any:
    """Jits `rule` with `shard_map`: each device runs it on its own shard."""
    shares = jax.shard_map(rule, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    return jax.jit(shares, **jit_options)


def shardings(mesh: Mesh, specs: Any) -> Any:
    """The sharding on this mesh for each partition spec of a tree."""
    return jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        specs,
        is_leaf=lambda x: isinstance(x, PartitionSpec),
    )


def first_index(size: int) -> Array:
    """int32[], first index of this device's `size` items; call inside `on_devices`."""
    return jax.lax.axis_index(AXIS) * size


def pmean(tree: Any) -> Any:
    """`pmean` over the mesh axis; call inside `on_devices`."""
    return jax.lax.pmean(tree, AXIS)


def psum(tree: Any) -> Any:
    """`psum` over the mesh axis; call inside `on_devices`."""
    return jax.lax.psum(tree, AXIS)


def pmax(tree: Any) -> Any:
    """`pmax` over the mesh axis; call inside `on_devices`."""
    return jax.lax.pmax(tree, AXIS)
