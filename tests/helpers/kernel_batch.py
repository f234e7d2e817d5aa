"""A pytest plugin: the native engine's games in NumPy are played by the kernels for GPUs instead.

`pytest -p kernel_batch` needs KERNELS, a folder that `cuda_on_cpu.py` has built, in LD_LIBRARY_PATH
too; it replaces `batch.observe` and `batch.step`.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.game.native import batch
from hackmatrix.game.native.cuda_check import CudaDriver
from hackmatrix.game.native.layout import Games, Step, empty_step
from hackmatrix.game.rules.observation import RECORD_SIZE

Array = np.ndarray[Any, Any]


@cache
def driver() -> CudaDriver:
    return CudaDriver(Path(os.environ["KERNELS"], "kernels.ptx").read_bytes())


def launch(name: str, given: list[Array], results: list[Array], **settings: Any) -> None:
    """Runs a kernel on copies; the results are copied back into the arrays."""
    at = [driver().put(array) for array in (*given, *results)]
    driver().launch(name, at, len(given[0]), **settings)
    for array, address in zip(results, at[len(given) :], strict=True):
        driver().get(address, array)
    for address in at:
        driver().free(address)


def observe(games: Games, *, threads: int = 1) -> tuple[Array, Array]:
    batch.check(games, threads=threads)
    number = len(games.states)
    observation, mask = np.zeros((number, RECORD_SIZE), np.uint8), np.zeros(number, np.uint32)
    launch("observe", [games.states], [observation])
    launch("masks", [games.states], [mask])
    return observation, mask


def step(
    games: Games,
    actions: Array,
    *,
    max_episode_steps: int | None = None,
    auto_reset: bool = True,
    reward: str = "game",
    threads: int = 1,
) -> Step:
    del threads
    out = empty_step(len(games.states))
    launch(
        "step",
        [*games, actions],
        [*games, *out],
        max_episode_steps=max_episode_steps or batch.NO_LIMIT,
        auto_reset=auto_reset,
        progress=reward == "progress",
    )
    return out


batch.observe, batch.step = observe, step  # type: ignore[assignment]
