from typing import Any

import numpy as np

STATE_SIZE: int
SAVED_SIZE: int
SOURCE_DIGEST: str  # `constants.source_digest` when it was built
XLA_HANDLERS: dict[str, Any]  # custom calls by name; missing where it was built without JAX
CUDA_HANDLERS: dict[str, Any]  # the same calls on NVIDIA's GPUs
CUDA_INITIALIZERS: dict[str, Any]  # what comes before them

_Array = np.ndarray[Any, Any]

def load_kernels(image: bytes) -> str: ...  # why they can't be used, or ""
def reset(states: _Array, streams: _Array, episodes: _Array, threads: int) -> None: ...
def observe(states: _Array, observation: _Array, mask: _Array, threads: int) -> None: ...
def check(states: _Array, saved: _Array, threads: int) -> None: ...
def tactical(records: _Array, numbers: _Array, threads: int) -> None: ...
def scripted(
    records: _Array, weights: _Array, forbidden: int, actions: _Array, threads: int
) -> None: ...
def features(records: _Array, made: _Array, full: bool, threads: int) -> None: ...
def step(
    states: _Array,
    saved: _Array,
    returns: _Array,
    lengths: _Array,
    held: _Array,  # empty for none
    actions: _Array,
    max_episode_steps: int,
    auto_reset: bool,
    progress: bool,
    threads: int,
    *results: _Array,
) -> None: ...
