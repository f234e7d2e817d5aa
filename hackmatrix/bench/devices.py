"""All devices at once, each with its share of the games: on CPU every core is a device."""

import contextlib
import os
from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, PartitionSpec

GAMES = "shares"  # name of the axis over the devices
SHARED = PartitionSpec(GAMES)  # of arrays with games first
SAME = PartitionSpec()


def use_all_cores() -> None:
    """Makes every core a device of its own, unless JAX has already started with fewer.

    XLA runs the many small operations of a step one after the other; a second core helps little
    unless it has games of its own.
    """
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))


def devices_for(games: int) -> Mesh:
    """The devices that share so many games: all, or one where they can't share equally."""
    devices = jax.devices()
    if games % len(devices):
        devices = devices[:1]
    return jax.make_mesh((len(devices),), (GAMES,), (AxisType.Auto,), devices=devices)


def on_devices(
    rule: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, **jit_options: Any
) -> Any:
    """A jitted function in which each device works on its own share."""
    shares = jax.shard_map(rule, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    return jax.jit(shares, **jit_options)


def first_game(games: int) -> jax.Array:
    """int32: the number of the first of the `games` games of this share, within the function."""
    return jax.lax.axis_index(GAMES) * games


def total(tree: Any) -> Any:
    """Sums over the shares, within the function."""
    return jax.lax.psum(tree, GAMES)
