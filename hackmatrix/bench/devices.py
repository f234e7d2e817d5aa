"""All devices at once, each with its share of the games: on CPU every core is a device."""

import contextlib
import os

import jax
from jax.sharding import Mesh

from hackmatrix.learner.mesh import mesh_of


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
    return mesh_of(devices[:1] if games % len(devices) else devices)
