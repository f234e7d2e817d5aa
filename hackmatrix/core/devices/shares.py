"""All devices with equal shares of the games; on CPU every core is a device."""

import contextlib

import jax
from jax.sharding import Mesh

from hackmatrix.core.devices.mesh import mesh_of
from hackmatrix.core.processes.cores import num_cores


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
