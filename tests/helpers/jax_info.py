"""Infos of a step of the environment, as far as a test doesn't give them itself."""

from functools import cache

import jax
import jax.numpy as jnp

from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.interface.spaces import StepSpec


def whole_info(*games: int) -> dict[str, jax.Array]:
    """Every entry of `info`, all zeros, of one game or of arrays of games."""
    boxes = _spec().info
    return {name: jnp.zeros((*games, *box.shape), box.dtype) for name, box in boxes.items()}


@cache
def _spec() -> StepSpec:
    return HackMatrixEnv().spec  # traces a new game
