"""Which games are played, and how long; imports neither JAX nor NumPy."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Number of games, their seed, the steps after which they are cut off, and the first game."""

    episodes: int = 1_000
    seed: int = 0
    max_steps: int = 2_000
    first: int = 0
