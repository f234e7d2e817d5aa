"""The face of the games of a vector environment, whichever engine plays them."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hackmatrix.game.engine.state import State

Array = NDArray[Any]


class BatchSettings(NamedTuple):
    """The settings of N games; see `GameVectorEnv`."""

    num_envs: int
    observation: str
    max_episode_steps: int | None
    mode: AutoresetMode
    reward: str


class Begun(NamedTuple):
    """Games that have begun, as their engine has them."""

    games: Any
    mask: Array  # bool[N, 28]
    observation: Array


class BatchStep(NamedTuple):
    """The results of a step, of each game, in arrays that belong to the caller."""

    observation: Array
    final_observation: Array | None  # where some games have ended and others begun in their place
    mask: Array  # bool[N, 28]
    reward: Array  # float32[N]
    terminated: Array  # bool[N]
    truncated: Array  # bool[N]
    facts: dict[str, Array]  # the other infos


class GameBatch(Protocol):
    """Plays N games."""

    def begin(self, streams: NDArray[np.uint32]) -> Begun:
        """Begins the first game of each stream."""

    def replace(self, chosen: NDArray[np.bool_], begun: Begun, games: Any, mask: Array) -> Begun:
        """The games, of which those that are chosen have just begun."""

    def play(self, games: Any, actions: NDArray[np.int32]) -> tuple[Any, BatchStep]:
        """Takes an action in each game; `games` is used up."""

    def state(self, games: Any, index: int) -> State:
        """One of the games, in the Python engine."""

    def snapshot(self, games: Any) -> Any:
        """The games in arrays that can be pickled, and that no step changes."""
