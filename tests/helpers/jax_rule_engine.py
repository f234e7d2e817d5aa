"""The JAX engine as rule cases play it."""

from collections.abc import Sequence
from typing import Any

import jax
import jax_games
import numpy as np
from rule_cases import Data, Parts, Play

from hackmatrix.game.engine.saving import state_from_dict, state_to_dict
from hackmatrix.game.jaxgame.conversion import state_to_engine
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import REWARD_PARTS


class JaxPlay:
    """The game at every place of the batch; the last place is the one that is looked at."""

    def __init__(self, data: Data) -> None:
        self.state = jax_games.begin([state_from_dict(data)])

    def valid_actions(self) -> list[int]:
        bits = int(jax_games.masks(self.state)[-1])
        return [action for action in range(NUM_ACTIONS) if bits >> action & 1]

    def step(self, action: int) -> tuple[Data, Parts, list[int]]:
        stepped = jax_games.step(self.state, np.full(jax_games.GAMES, action))
        self.state = stepped.state
        parts = jax_games.parts_of(stepped.info)[-1].tolist()
        parts_by_name = dict(zip(REWARD_PARTS, parts, strict=True))
        return _at(jax.device_get(self.state.game), -1), parts_by_name, self.valid_actions()


class JaxEngine:
    def from_dict(self, data: Data) -> Play:
        return JaxPlay(data)

    def after(self, states: Sequence[Data], action: int) -> list[Data]:
        batch = jax_games.begin([state_from_dict(data) for data in states])
        stepped = jax_games.step(batch, np.full(jax_games.GAMES, action))
        games = jax.device_get(stepped.state.game)
        return [_at(games, place) for place in range(len(states))]


def _at(games: Any, place: int) -> Data:
    return state_to_dict(state_to_engine(jax.tree.map(lambda x: x[place], games)))
