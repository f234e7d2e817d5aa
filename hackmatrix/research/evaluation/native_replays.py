"""Accounts of games in the native engine, which plays many together."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hackmatrix.core.processes import num_cores
from hackmatrix.game.engine.state import Ending
from hackmatrix.game.native.batch import reset, step
from hackmatrix.game.native.conversion import ENDINGS, state_to_engine
from hackmatrix.game.native.layout import Games
from hackmatrix.game.rules.rewards import REWARD_PARTS, SIPHON_QUALITY, UNIT
from hackmatrix.research.evaluation.accounts import Account, Death, Holdings, Recorder, take

Array = np.ndarray[Any, Any]

_COMPLETION, _MISSED = map(REWARD_PARTS.index, ("stage_completion", "siphon_quality"))
_DIED, _RUNNING = ENDINGS.index(Ending.DIED), ENDINGS.index(None)

# From how many actions were taken, the places of the K games under way and all N games to the
# actions of these K, integers.
Choose = Callable[[int, Array, Games], Any]


def native_replays(
    streams: Sequence[int], episodes: Sequence[int], actions: Sequence[bytes]
) -> list[Account]:
    """The accounts of N games that were played.

    Args:
        streams: of their dice.
        episodes: their numbers in the streams.
        actions: all that were taken in each game.
    """

    def next_recorded(time: int, due: Array, games: Games) -> list[int]:
        del games
        return [actions[game][time] for game in due.tolist()]

    return native_accounts(streams, episodes, [len(each) for each in actions], next_recorded)


def native_accounts(
    streams: Sequence[int], episodes: Sequence[int], most: Sequence[int], choose: Choose
) -> list[Account]:
    """The accounts of N games that are played now.

    Args:
        streams: of their dice.
        episodes: their numbers in the streams.
        most: actions after which each is cut off.
        choose: who plays.
    """
    games, out = reset(np.array(streams), np.array(episodes)), None
    recorders = list(map(Recorder, _holdings(games.states, slice(None))))
    for time in range(max(most)):
        held = (np.array(most) <= time) | (games.states["over"] != _RUNNING)
        due = np.flatnonzero(~held)
        if not due.size:
            break
        chosen = np.zeros(len(held), np.int32)
        chosen[due] = choose(time, due, games)
        before = games.states[due]
        out = step(games, chosen, held=held, out=out, auto_reset=False, threads=num_cores())
        missed = np.rint(out.reward_parts[due, _MISSED] / (SIPHON_QUALITY * UNIT)).astype(int)
        noted = zip(
            due.tolist(),
            chosen[due].tolist(),
            _holdings(games.states, due),
            (out.reward_parts[due, _COMPLETION] > 0).tolist(),
            missed.tolist(),
            (games.states["over"][due] == _DIED).tolist(),
            strict=True,
        )
        for place, (game, action, *facts, died) in enumerate(noted):
            death = _death(games, before[place : place + 1], action) if died else None
            recorders[game].note(action, *facts, death)
    endings = [ENDINGS[number] for number in games.states["over"]]
    ends = zip(recorders, endings, games.episode_return.tolist(), strict=True)
    return [recorder.account(ending, units) for recorder, ending, units in ends]


def _holdings(states: Array, indices: Any) -> list[Holdings]:
    position = states["position"]
    player = position["player"]
    columns = (
        states["stage"],
        *(player[name] for name in ("hp", "siphons", "credits", "energy", "score")),
        np.bitwise_count(position["owned"]),
        position["enemies"]["count"],
        position["cells"]["spawn"].sum(axis=1, dtype=np.int32),
    )
    return list(map(Holdings, *(column[indices].tolist() for column in columns)))


def _death(games: Games, states: Array, action: int) -> Death | None:
    """The death by an action, which the Python engine takes again: it tells who hit the player."""
    states["saved"] = 0  # what UNDO restores has been written over, and plays no part
    return take(state_to_engine(games._replace(states=states), 0), action)[1]
