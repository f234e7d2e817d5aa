"""The device mesh: one program on all devices, each with its own share of the games.

A function that runs on them sees the arrays of its own games, and the whole of everything else.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

Array = jax.Array

AXIS = "games"
SHARDED = PartitionSpec(AXIS)  # of arrays with games first: each device has its own
REPLICATED = PartitionSpec()  # of arrays that are the same everywhere


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


def first_index(size: int) -> Array:
    """int32[]: index of this device's first item of `size` each; call inside `on_devices`."""
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
