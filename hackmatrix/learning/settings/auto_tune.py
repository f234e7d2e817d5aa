"""Chooses settings for the device that JAX finds."""

from typing import Any

from hackmatrix.core.processes.cores import num_cores


def settings_for(platform: str, num_devices: int) -> dict[str, Any]:
    """Number of games and steps, and the precision, for `num_devices` devices of a platform.

    The number of games is chosen to keep a device busy: on CPU the speed stops growing at about
    2,048 games (docs/performance.md); accelerators take thousands more, with fewer steps, so that a
    batch stays below a million transitions per device. The number of minibatches follows from the
    batch, see `batch_scaling.py`. Accelerators are built for bfloat16 products; CPUs gain nothing
    from them.
    """
    if platform == "cpu":
        return {
            "num_envs": 2048 if num_cores() > 1 else 1024,
            "num_steps": 128,
            "dtype": "float32",
        }
    games, steps = {"tpu": (2048, 128), "gpu": (8192, 64)}.get(platform, (2048, 128))
    return {"num_envs": games * num_devices, "num_steps": steps, "dtype": "bfloat16"}
