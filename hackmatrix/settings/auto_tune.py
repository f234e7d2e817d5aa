"""Settings for the device that was found. Imports no JAX."""

import os
from typing import Any


def settings_for(platform: str, num_devices: int) -> dict[str, Any]:
    """Games, steps and precision for `num_devices` devices of a platform.

    Games are what fills a device: on CPU speed stops growing at some 2,048 games (docs/performance
    .md); an accelerator takes thousands more, with fewer steps so that a batch stays below a
    million transitions a device. Minibatches follow from the batch, see `scaling.py`. Products in
    bfloat16 are what accelerators are built for; CPUs gain nothing by them.
    """
    if platform == "cpu":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return {"num_envs": 2048 if cores > 1 else 1024, "num_steps": 128, "dtype": "float32"}
    games, steps = {"tpu": (2048, 128), "gpu": (8192, 64)}.get(platform, (2048, 128))
    return {"num_envs": games * num_devices, "num_steps": steps, "dtype": "bfloat16"}
