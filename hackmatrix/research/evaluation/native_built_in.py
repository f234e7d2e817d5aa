"""Games of built-in players in the native engine: the same games as in Python, sooner."""

import random
from bisect import bisect
from collections.abc import Collection
from itertools import accumulate, chain
from typing import Any

import numpy as np

from hackmatrix.agents.scripted.weights import TUNED
from hackmatrix.core.processes import num_cores
from hackmatrix.game.native.batch import scripted_actions
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.lockstep_games import Positions, lockstep_accounts
from hackmatrix.research.evaluation.plain_games import on_all_cores

Array = np.ndarray[Any, Any]

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
