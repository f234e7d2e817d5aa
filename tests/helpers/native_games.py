"""The native engine as rule cases and lockstep play it; a game that has ended stays as it is."""

from collections.abc import Sequence

import numpy as np

from hackmatrix.game.engine.state import State
from hackmatrix.game.native import batch
from hackmatrix.game.native.batch import Games
from hackmatrix.game.native.conversion import games_from_engine as begin
from hackmatrix.game.native.conversion import state_to_engine as state_of
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import UNIT

__all__ = ["begin", "parts_of", "state_of", "step", "valid_actions"]


def valid_actions(games: Games) -> list[list[int]]:
    """The valid actions of each game."""
    _, masks = batch.observe(games)
    return [[a for a in range(NUM_ACTIONS) if mask >> a & 1] for mask in masks.tolist()]


def step(games: Games, actions: Sequence[int]) -> list[list[int]]:
    """Takes an action in each game; returns the parts of the rewards in units of 0.005."""
    stepped = batch.step(games, np.array(actions, np.int32), auto_reset=False)
    return parts_of(stepped).tolist()


class NativeBatch:
    """Games under way, as `lockstep_play.Batch`."""

    name = "native"

    def __init__(self, states: Sequence[State]) -> None:
        self._games = begin(list(states))

    def states(self) -> list[State]:
        return [state_of(self._games, place) for place in range(len(self._games.states))]

    def masks(self) -> list[int]:
        return batch.observe(self._games)[1].tolist()

    def observations(self) -> np.ndarray:
        return batch.observe(self._games)[0]

    def step(self, actions: Sequence[int]) -> np.ndarray:
        return np.array(step(self._games, actions))


def parts_of(stepped: batch.Step) -> np.ndarray:
    """int32[N, parts]: the parts of the rewards in units of 0.005."""
    parts = np.rint(stepped.reward_parts / np.float32(UNIT))
    np.testing.assert_array_equal(parts * np.float32(UNIT), stepped.reward_parts)
    return parts.astype(np.int32)
