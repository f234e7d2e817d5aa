"""Settings for the device that was found. Imports no JAX."""

import os
from typing import Any


def settings_for(platform: str, num_devices: int) -> dict[str, Any]:
    """Games, steps, minibatches and precision for `num_devices` devices of a platform.

    Games are what fills a device: on CPU speed stops growing at some 2,048 games (docs/performance
    .md); an accelerator takes thousands more, with fewer steps so that a batch stays below a
    million transitions a device. Minibatches stay at 8,192 transitions a device. Products in
    bfloat16 are what accelerators are built for; CPUs gain nothing by them.
    """
    if platform == "cpu":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        games, steps = (2048 if cores > 1 else 1024), 128
        return _tuned(games, steps, 1, "float32")
    games, steps = {"tpu": (2048, 128), "gpu": (8192, 64)}.get(platform, (2048, 128))
    return _tuned(games, steps, num_devices, "bfloat16")


def _tuned(games: int, steps: int, num_devices: int, dtype: str) -> dict[str, Any]:
    batch = games * steps
    return {
        "num_envs": games * num_devices,
        "num_steps": steps,
        "num_minibatches": batch // 8192,
        "dtype": dtype,
    }
