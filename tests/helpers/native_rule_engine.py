"""The native engine as rule cases play it."""

from collections.abc import Sequence
from typing import Any

import native_games
from rule_cases import Data, Parts, Play

from hackmatrix.game.engine.saving import state_from_dict, state_to_dict
from hackmatrix.game.rules.rewards import REWARD_PARTS


class NativePlay:
    def __init__(self, data: Data) -> None:
        self.games = native_games.begin([state_from_dict(data)])

    def valid_actions(self) -> list[int]:
        return native_games.valid_actions(self.games)[0]

    def step(self, action: int) -> tuple[Data, Parts, list[int]]:
        parts = native_games.step(self.games, [action])[0]
        parts_by_name = dict(zip(REWARD_PARTS, parts, strict=True))
        return _native_at(self.games, 0), parts_by_name, self.valid_actions()


class NativeEngine:
    def from_dict(self, data: Data) -> Play:
        return NativePlay(data)

    def after(self, states: Sequence[Data], action: int) -> list[Data]:
        games = native_games.begin([state_from_dict(data) for data in states])
        native_games.step(games, [action] * len(states))
        return [_native_at(games, place) for place in range(len(states))]


def _native_at(games: Any, place: int) -> Data:
    return state_to_dict(native_games.state_of(games, place))
