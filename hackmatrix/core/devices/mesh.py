"""The device mesh: one program runs on all devices, each with its own shard of the games.

A function run by `on_devices` sees its device's shard of sharded arrays and all of replicated ones.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from hackmatrix.core.processes import num_cores

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


def put(tree: Any, wanted: Any) -> Any:
    """Puts arrays that every process holds whole on the devices.

    Args:
        tree: the arrays.
        wanted: for each part of the tree, the sharding of its arrays.
    """
    if all(sharding.is_fully_addressable for sharding in jax.tree.leaves(wanted)):
        return jax.device_put(tree, wanted)

    def put_one(array: Any, sharding: NamedSharding) -> Array:
        # `device_put` would first compare the arrays of all processes, one after another.
        array = np.asarray(array)
        return jax.make_array_from_callback(array.shape, sharding, array.__getitem__)

    return jax.tree.map(
        lambda sharding, part: jax.tree.map(partial(put_one, sharding=sharding), part), wanted, tree
    )


def local(tree: Any) -> Any:
    """Replicated arrays as arrays of this process's first device alone."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree)


def sum_over_processes(array: np.ndarray, mesh: Mesh) -> np.ndarray:
    """The sum of what all processes give; all of them call it at once.

    Args:
        array: integers, of the same shape and dtype in all processes.
        mesh: devices of all processes.
    """
    processes = [device.process_index for device in mesh.devices.flat]
    giver = processes.index(jax.process_index())

    def of_device(index: tuple[slice, ...] | None) -> np.ndarray:
        number = 0 if index is None else index[0].start or 0
        return (array if number == giver else np.zeros_like(array))[None]

    sharding = NamedSharding(mesh, SHARDED)
    each = jax.make_array_from_callback((mesh.size, *array.shape), sharding, of_device)
    return np.asarray(_sum_over_devices(mesh)(each))


@cache
def _sum_over_devices(mesh: Mesh) -> Any:
    return on_devices(lambda x: psum(x[0]), mesh, SHARDED, REPLICATED)


def first_index(size: int) -> Array:
    """int32[], first index of this device's `size` items; call inside `on_devices`."""
    return jax.lax.axis_index(AXIS) * size


def pmean(tree: Any) -> Any:
    """`pmean` over the mesh axis; call inside `on_devices`."""
    return _reduce_tree(jax.lax.pmean, tree)


def psum(tree: Any) -> Any:
    """`psum` over the mesh axis; call inside `on_devices`."""
    return _reduce_tree(jax.lax.psum, tree)


def pmax(tree: Any) -> Any:
    """`pmax` over the mesh axis; call inside `on_devices`."""
    return _reduce_tree(jax.lax.pmax, tree)


def _reduce_tree(reduce: Callable[[Any, str], Any], tree: Any) -> Any:
    """Reduces all arrays of a dtype as one: for each array processes would wait for each other."""
    if jax.lax.axis_size(AXIS) == 1:  # XLA would copy them all
        return tree
    arrays, structure = jax.tree.flatten(tree)
    if len(arrays) < 2:
        return reduce(tree, AXIS)
    for dtype in {array.dtype: None for array in arrays}:  # a dict, for its order
        places = [place for place, array in enumerate(arrays) if array.dtype == dtype]
        vector, to_arrays = ravel_pytree([arrays[place] for place in places])
        for place, reduced in zip(places, to_arrays(reduce(vector, AXIS)), strict=True):
            arrays[place] = reduced
    return jax.tree.unflatten(structure, arrays)


# --- All devices with equal shares of the games; on CPU every core is a device --------------------


def use_all_cores() -> None:
    """Makes every core a JAX device, unless JAX has already been used in this process.

    XLA runs the many small operations of a step one after another, so a second core helps little
    unless it has its own games.
    """
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", num_cores())


def devices_for(games: int) -> Mesh:
    """A mesh of all devices, or of a single one if `games` can't be divided evenly among all."""
    devices = jax.devices()
    return mesh_of(devices[:1] if games % len(devices) else devices)
