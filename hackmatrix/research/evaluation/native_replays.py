"""Accounts of games in the native engine, which plays many together."""

import random
from bisect import bisect
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from hackmatrix.agents.scripted.weights import TUNED
from hackmatrix.core.processes.cores import num_cores
from hackmatrix.game.engine.state import Ending
from hackmatrix.game.native.batch import reset, scripted_actions, step
from hackmatrix.game.native.conversion import ENDINGS, state_to_engine
from hackmatrix.game.native.layout import Games
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.game.rules.rewards import REWARD_PARTS, SIPHON_QUALITY, UNIT
from hackmatrix.research.evaluation.accounts import Account, Death, Holdings, Recorder, take
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.lockstep_games import Positions, lockstep_accounts
from hackmatrix.research.evaluation.plain_games import on_all_cores

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


# --- Games of built-in players in the native engine: the same games as in Python, sooner ----------


WEIGHTS = np.hstack(TUNED)
_GAMES = 1_000  # of random play that a process takes at once
# The limits of `random.choices` between so many actions of equal probability.
_LIMITS = [list(accumulate([1 / max(count, 1)] * count)) for count in range(NUM_ACTIONS + 1)]


def scripted_accounts(limits: Limits, forbidden: Collection[int]) -> list[Account]:
    """The accounts of the scripted player's games without some actions."""
    bits = sum(1 << action for action in forbidden)

    def choose(positions: Positions) -> object:
        return scripted_actions(positions.records, WEIGHTS, bits, threads=num_cores())

    return lockstep_accounts(choose, limits)


def random_accounts(limits: Limits, forbidden: Collection[int]) -> list[Account]:
    """The accounts of random play's games without some actions, on all cores."""
    end = limits.first + limits.episodes
    jobs = [
        (limits._replace(first=first, episodes=min(_GAMES, end - first)), frozenset(forbidden))
        for first in range(limits.first, end, _GAMES)
    ]
    return list(chain(*on_all_cores(_play_randomly, jobs, unit="thousand games", worth=2)))


def _play_randomly(job: tuple[Limits, frozenset[int]]) -> list[Account]:
    limits, forbidden = job
    kept = [action not in forbidden for action in range(NUM_ACTIONS)]
    stream, dice = EVALUATION_STREAM + limits.seed, random.Random()

    def choose(positions: Positions) -> Array:
        allowed = positions.masks & kept
        none_left = ~allowed.any(axis=1)
        allowed[none_left] = positions.masks[none_left]
        choices = []
        for number, count in zip(positions.episodes.tolist(), allowed.sum(axis=1), strict=True):
            dice.seed(f"{stream} {number} {positions.time}")  # as `Opinion.sample` does
            shares = _LIMITS[count]
            choices.append(bisect(shares, dice.random() * shares[-1], 0, count - 1))
        up_to_here: Array = allowed.cumsum(axis=1)
        return (up_to_here > np.array(choices)[:, None]).argmax(axis=1)

    return lockstep_accounts(choose, limits)
