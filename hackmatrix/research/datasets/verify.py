"""Plays the games of a data set again and compares: in the JAX engine, and in the plain Python one.

The JAX engine plays all games. The Python engine, which shares no code with it, plays a sample or
all of them; it knows HackMatrix alone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.datasets.folder import DataSet, DatasetFacts, Shard
from hackmatrix.research.datasets.jax_replay import (
    ReplayBatch,
    Replayer,
    data_environment,
    finals_of,
)
from hackmatrix.research.datasets.python_replay import Difference, OracleGame, first_difference
from hackmatrix.research.evaluation.plain_games import on_all_cores

_GAMES_AT_ONCE = 1024
_SAMPLE = 64  # games


class DatasetVerdict(NamedTuple):
    """The games of a data set, played again."""

    games: int  # played again
    steps: int
    oracle_games: int  # of them in the Python engine too
    differing: int  # games
    first: Difference | None  # of the game with the lowest number

    def and_also(self, other: "DatasetVerdict") -> "DatasetVerdict":
        """The verdict on the games of both."""
        first = [each.first for each in (self, other) if each.first is not None]
        return DatasetVerdict(
            self.games + other.games,
            self.steps + other.steps,
            self.oracle_games + other.oracle_games,
            self.differing + other.differing,
            min(first, default=None),
        )


NOTHING = DatasetVerdict(games=0, steps=0, oracle_games=0, differing=0, first=None)


def verify(data: DataSet, environment: str, *, oracle: bool) -> Iterator[DatasetVerdict]:
    """Plays all games of a data set again; yields the verdict on each shard.

    Args:
        data: the data set.
        environment: its id.
        oracle: whether the Python engine plays all games, instead of a sample.

    Raises:
        DamagedError: the data set is damaged.
    """
    facts, env = data.facts, data_environment(environment)
    replayer = Replayer(env, facts.seed, min(_GAMES_AT_ONCE, facts.games))
    sample = facts.games if oracle else min(_SAMPLE, facts.games)
    sampled = np.arange(sample) * facts.games // sample  # evenly spread
    for shard in data.shards():
        differences = {
            each.game: each for each in _differences(shard, facts, replayer, env.num_actions)
        }
        chosen = sampled - shard.first
        chosen = chosen[(chosen >= 0) & (chosen < len(shard.lengths))]
        if environment != ENVIRONMENT_ID:
            chosen = chosen[:0]
        for difference in on_all_cores(first_difference, _oracle_games(shard, facts, chosen)):
            if difference is not None:
                differences[difference.game] = min(
                    difference, differences.get(difference.game, difference)
                )
        first = min(differences.values(), default=None)
        steps = len(shard.actions)
        yield DatasetVerdict(len(shard.lengths), steps, len(chosen), len(differences), first)


def _differences(
    shard: Shard, facts: DatasetFacts, replayer: Replayer, num_actions: int
) -> Iterator[Difference]:
    """The first difference of each game that is another one in the JAX engine."""
    known = shard._replace(actions=np.where(shard.actions < num_actions, shard.actions, 0))
    for batch in replayer.batches(known):
        fields = _compare(shard, batch, facts, num_actions)
        anywhere = np.logical_or.reduce([field.differs for field in fields]) & batch.within
        for game in np.flatnonzero(anywhere.any(axis=0)):
            time = int(anywhere[:, game].argmax())
            field = next(field for field in fields if field.differs[time, game])
            there, here = str(field.recorded[time, game]), str(field.replayed[time, game])
            yield Difference(shard.first + int(batch.games[game]), time, field.name, there, here)


class _Field(NamedTuple):
    """The values compared at each action of N games: arrays [T, N]."""

    name: str
    differs: NDArray[np.bool_]
    recorded: NDArray[Any]
    replayed: NDArray[Any]


def _compare(
    shard: Shard, batch: ReplayBatch, facts: DatasetFacts, num_actions: int
) -> list[_Field]:
    """The fields in the order in which a difference is told."""
    times = np.arange(len(batch.actions))[:, None]
    steps = np.minimum(shard.starts[batch.games] + times, len(shard.actions) - 1)
    actions, rewards = shard.actions[steps], shard.rewards[steps]
    is_last = times == batch.lengths - 1
    terminated = is_last & shard.terminated[batch.games]
    cut_off = is_last & ~terminated
    ends = np.select([batch.terminated, batch.truncated], ["ended", "cut off"], "goes on")
    recorded_ends = np.select([terminated, cut_off], ["ended", "cut off"], "goes on")
    # A game without a limit of its own is cut off by the recorder's.
    by_limit = cut_off & (ends == "goes on") & (batch.lengths == facts.max_steps)
    finals = np.broadcast_to(finals_of(batch.final_observations), actions.shape)
    recorded_finals = np.broadcast_to(shard.finals[batch.games], actions.shape)
    invalid = ~batch.valid | (actions >= num_actions)
    return [
        _Field("action", invalid, actions, np.full(actions.shape, "not valid")),
        _Field("reward", rewards != batch.rewards, rewards, batch.rewards),
        _Field("end", (ends != recorded_ends) & ~by_limit, recorded_ends, ends),
        _Field("observation", is_last & (finals != recorded_finals), recorded_finals, finals),
    ]


def _oracle_games(shard: Shard, facts: DatasetFacts, chosen: NDArray[Any]) -> list[OracleGame]:
    with np.errstate(invalid="ignore"):  # of damaged rewards
        units = np.rint(shard.rewards / np.float32(UNIT)).astype(np.int32)
    starts = shard.starts
    games = []
    for index in chosen:
        steps = slice(starts[index], starts[index] + shard.lengths[index])
        games.append(
            OracleGame(
                facts.seed,
                shard.first + int(index),
                facts.max_steps,
                shard.actions[steps].tobytes(),
                units[steps].tobytes(),
                bool(shard.terminated[index]),
                int(shard.finals[index]),
            )
        )
    return games
