"""Evaluation games of HackMatrix whose player chooses in many games at once; no JAX."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.game import native
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.research.evaluation.accounts import Account, account
from hackmatrix.research.evaluation.limits import Limits

Array = np.ndarray[Any, Any]
_AT_ONCE = 1024  # games, so that their observations fit in memory


class Positions(NamedTuple):
    """The positions of K games under way."""

    episodes: Array  # int[K], of the games in their stream
    time: int  # actions taken in each
    records: Array  # uint8[K, RECORD_SIZE]
    masks: Array  # bool[K, 28]


Choose = Callable[[Positions], Any]  # to actions, integers [K]


def lockstep_accounts(choose: Choose, limits: Limits) -> list[Account]:
    """The accounts of games: in the native engine, else one after another in the Python engine."""
    play = _native if native.available else _in_python
    accounts = list[Account]()
    for first in range(0, limits.episodes, _AT_ONCE):
        number = min(_AT_ONCE, limits.episodes - first)
        accounts += play(choose, limits._replace(episodes=number, first=limits.first + first))
    return accounts


def _native(choose: Choose, limits: Limits) -> list[Account]:
    from hackmatrix.game.native.batch import flags, observe
    from hackmatrix.game.native.layout import Games
    from hackmatrix.research.evaluation.native_replays import native_accounts

    def actions(time: int, due: Array, games: Games) -> Any:
        records, masks = observe(games)
        return choose(Positions(limits.first + due, time, records[due], flags(masks[due])))

    count, stream = limits.episodes, EVALUATION_STREAM + limits.seed
    numbers = range(limits.first, limits.first + count)
    return native_accounts([stream] * count, numbers, [limits.max_steps] * count, actions)


def _in_python(choose: Choose, limits: Limits) -> list[Account]:
    def of_game(episode: int) -> Callable[[State], int]:
        def action(state: State) -> int:
            mask = np.zeros((1, NUM_ACTIONS), np.bool_)
            mask[0, valid_actions(state)] = True
            record = np.frombuffer(observe(state), np.uint8)[None].copy()
            return int(choose(Positions(np.array([episode]), state.dice.clock, record, mask))[0])

        return action

    stream, end = EVALUATION_STREAM + limits.seed, limits.first + limits.episodes
    numbers = range(limits.first, end)
    return [account(stream, number, of_game(number), limits.max_steps) for number in numbers]
