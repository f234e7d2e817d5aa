"""The native engine as rule cases and lockstep play it; a game that has ended stays as it is."""

from collections.abc import Sequence

import numpy as np
from rule_cases import Data, Parts, Play

from hackmatrix.game.engine.saving import state_from_dict, state_to_dict
from hackmatrix.game.engine.state import State
from hackmatrix.game.native import batch
from hackmatrix.game.native.conversion import games_from_engine, state_to_engine
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT


class NativeBatch:
    """Games under way, as `lockstep_play.Batch`."""

    name = "native"

    def __init__(self, states: Sequence[State]) -> None:
        self._games = games_from_engine(list(states))

    def states(self) -> list[State]:
        return [state_to_engine(self._games, place) for place in range(len(self._games.states))]

    def masks(self) -> list[int]:
        return batch.observe(self._games)[1].tolist()

    def observations(self) -> np.ndarray:
        return batch.observe(self._games)[0]

    def step(self, actions: Sequence[int]) -> np.ndarray:
        stepped = batch.step(self._games, np.array(actions, np.int32), auto_reset=False)
        parts = np.rint(stepped.reward_parts / np.float32(UNIT))
        np.testing.assert_array_equal(parts * np.float32(UNIT), stepped.reward_parts)
        return parts.astype(np.int32)


class NativePlay:
    """A game as rule cases play it."""

    def __init__(self, data: Data) -> None:
        self.games = NativeBatch([state_from_dict(data)])

    def valid_actions(self) -> list[int]:
        (mask,) = self.games.masks()
        return [action for action in range(NUM_ACTIONS) if mask >> action & 1]

    def step(self, action: int) -> tuple[Data, Parts, list[int]]:
        (parts,) = self.games.step([action]).tolist()
        (state,) = self.games.states()
        by_name = dict(zip(REWARD_PARTS, parts, strict=True))
        return state_to_dict(state), by_name, self.valid_actions()


class NativeEngine:
    def from_dict(self, data: Data) -> Play:
        return NativePlay(data)

    def after(self, states: Sequence[Data], action: int) -> list[Data]:
        games = NativeBatch([state_from_dict(data) for data in states])
        games.step([action] * len(states))
        return [state_to_dict(state) for state in games.states()]
