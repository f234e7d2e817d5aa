"""Expert iteration in rounds: the search teaches, the network learns, the search becomes better."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.search.model import Searcher
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.imitation.search_targets import Lecturer, Lessons
from hackmatrix.learning.imitation.supervised import learn

_MOVES = 16  # of each game in one compiled call


class Plan(NamedTuple):
    """Settings of expert iteration."""

    search: int  # simulations
    weight: float  # logits that a reward of 1 is worth in a lesson
    rounds: int
    positions: int  # in all rounds
    games: int  # at once
    lr: float
    epochs: int  # over all lessons so far, at the end of each round
    batch: int
    seed: int


class Round(NamedTuple):
    """The results of a round."""

    number: int
    params: PyTree
    positions: int  # so far
    divergence: float  # of the network's policy from the teacher's, in nats
    seconds: float


def teach(policy: Policy, plan: Plan, after: Callable[[Round], None]) -> None:
    """Teaches the network of a policy; calls `after` at the end of each round.

    Raises:
        UserError: the policy's network can't be searched with, or its params became NaN.
    """
    searcher = Searcher.of(policy, plan.search)
    lecturer = Lecturer(searcher, plan.games, plan.weight, plan.seed)
    games, params, parts = lecturer.begin(), policy.params, []
    calls = -(-plan.positions // (plan.rounds * plan.games * _MOVES))
    began = time.monotonic()
    for number in range(1, plan.rounds + 1):
        for _ in range(calls):
            games, lessons = lecturer.give(params, games, _MOVES)
            parts.append(jax.device_get(lessons))
        lessons = _together(parts)
        params, loss = learn(
            searcher.network,
            params,
            lessons,
            lr=plan.lr,
            epochs=plan.epochs,
            batch=plan.batch,
            seed=plan.seed + number,
        )
        seconds, positions = time.monotonic() - began, len(lessons.mask)
        divergence = float(loss.divergence)
        after(Round(number, jax.device_get(params), positions, divergence, seconds))


def _together(parts: list[Any]) -> Lessons:
    lessons: Lessons = jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
    return lessons
