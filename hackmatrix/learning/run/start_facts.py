"""The facts that a run's folder records of each process that trains it."""

import datetime
import sys
from typing import Any

import jax

from hackmatrix.core import machine


def start_facts(update: int, devices: list[jax.Device]) -> dict[str, Any]:
    """The facts that the folder records for each process of the run, see `RunFolder.add_start`."""
    return {
        "update": update,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "devices": len(devices),
        **machine.machine(),
        "versions": machine.versions("jaxlib", "numpy", "flax", "optax", "orbax-checkpoint"),
        "commit": machine.commit(),
    }
