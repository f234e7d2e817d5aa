"""Plays games by compiled kernels and in the native engine on the CPU, and compares all results.

ptxas, which makes the code for a GPU, is a compiler with faults: that of CUDA 13.0 let threads of a
warp overwrite each other's registers. So new code has to play some games right, in a process of its
own, as wrong addresses end a process's use of the GPU: `python -m hackmatrix.game.native.cuda_check
FILE` exits with 0 if it does, and says in a line what is wrong if it does not.
"""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.game.native import batch
from hackmatrix.game.native.__main__ import random_actions
from hackmatrix.game.native.batch import NO_LIMIT
from hackmatrix.game.native.layout import Games, empty_step

GAMES, STEPS = 1024, 200
_BLOCK = 64
_POINTER = ctypes.c_void_p
_MOST_STEPS = 100  # of an episode, so that many end


class CudaDriverError(RuntimeError):
    """A call of the driver that failed."""


class CudaDriver:
    """The few functions of NVIDIA's driver that play by kernels, on the first device."""

    def __init__(self, image: bytes) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._kernels = ctypes.c_void_p()
        nothing = (None, None, 0, None, None, 0)
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuLibraryLoadData", ctypes.byref(self._kernels), image, *nothing)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function.

        Raises:
            CudaDriverError: it returned an error.
        """
        if code := getattr(self._library, name)(*arguments):
            raise CudaDriverError(f"{name} fails with error {code}")

    def put(self, array: np.ndarray) -> int:
        """The address of a copy on the device."""
        address = ctypes.c_size_t()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        self.copy(address.value, array)
        return address.value

    def free(self, address: int) -> None:
        """Frees what `put` took."""
        self.call("cuMemFree_v2", ctypes.c_size_t(address))

    def copy(self, address: int, array: np.ndarray) -> None:
        """Copies an array to the device."""
        size = ctypes.c_size_t(array.nbytes)
        self.call("cuMemcpyHtoD_v2", ctypes.c_size_t(address), array.ctypes.data_as(_POINTER), size)

    def get(self, address: int, array: np.ndarray) -> None:
        """Copies from the device into an array, after all that was launched."""
        size = ctypes.c_size_t(array.nbytes)
        self.call("cuMemcpyDtoH_v2", array.ctypes.data_as(_POINTER), ctypes.c_size_t(address), size)

    def launch(
        self,
        name: str,
        addresses: Sequence[int],
        games: int,
        *,
        max_episode_steps: int = NO_LIMIT,
        auto_reset: bool = True,
        progress: bool = False,
    ) -> None:
        """Launches a kernel; `calls.hpp` has its arrays, the settings are those of `batch.step`."""
        kernel = ctypes.c_void_p()
        self.call("cuLibraryGetKernel", ctypes.byref(kernel), self._kernels, name.encode())
        arrays = (ctypes.c_uint64 * len(addresses))(*addresses)
        settings, of = _Settings(max_episode_steps, auto_reset, progress), _Range(0, games)
        parameters = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (arrays, settings, of)))
        grid = (-(-games // _BLOCK), 1, 1, _BLOCK, 1, 1)
        self.call("cuLaunchKernel", kernel, *grid, 0, None, parameters, None)


class _Settings(ctypes.Structure):
    _fields_ = (
        ("max_episode_steps", ctypes.c_int32),
        ("auto_reset", ctypes.c_bool),
        ("progress", ctypes.c_bool),
    )


class _Range(ctypes.Structure):
    _fields_ = (("first", ctypes.c_size_t), ("count", ctypes.c_uint32))


def first_difference(image: bytes, games: int = GAMES, steps: int = STEPS) -> str | None:
    """The first result of random play that the kernels of a cubin or PTX get wrong, or None.

    Raises:
        CudaDriverError: they can't be loaded, or write where nothing is.
        OSError: there is no driver.
    """
    driver = CudaDriver(image)
    rng = np.random.default_rng(0)
    streams, episodes = np.arange(games, dtype=np.uint32), np.zeros(games, np.uint32)
    expected = batch.reset(streams, episodes)
    record, mask = batch.observe(expected)
    played = Games(*(np.zeros_like(array) for array in expected))
    got, integers = empty_step(games), batch.tactical_numbers(record)
    at = [driver.put(array) for array in played]
    results = [driver.put(array) for array in got]
    seeds, actions_at = [driver.put(each) for each in (streams, episodes)], driver.put(streams)
    integers_at, got_integers = driver.put(integers), np.zeros_like(integers)
    driver.launch("reset", [*seeds, *at[:2], results[1]], games)
    for t in range(steps):
        actions = random_actions(mask, rng)
        wanted = batch.step(expected, actions, max_episode_steps=_MOST_STEPS)
        driver.copy(actions_at, actions)
        step = [*at, actions_at, *at, *results]
        driver.launch("step", step, games, max_episode_steps=_MOST_STEPS)
        driver.launch("tactical", [results[0], integers_at], games)
        for name, address, result, right in zip(got._fields, results, got, wanted, strict=True):
            driver.get(address, result)
            if not np.array_equal(result, right):
                return f"{name} after {t + 1} steps"
        driver.get(integers_at, got_integers)
        if not np.array_equal(got_integers, batch.tactical_numbers(wanted.observation)):
            return f"the layout `tactical` after {t + 1} steps"
        mask = wanted.mask
    return None


def main() -> int:
    """Checks the file that is named."""
    try:
        wrong = first_difference(Path(sys.argv[1]).read_bytes())
    except (CudaDriverError, OSError) as error:
        wrong = str(error)
    print(wrong or "")
    return int(wrong is not None)


if __name__ == "__main__":
    sys.exit(main())
