"""Plays the games of an agent and yields them as shards, in the order of their numbers.

Shards are played in parallel, one in a thread for each core; games in the Python engine in
processes. Memory is bounded by the size of a shard, however many games there are.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from hackmatrix.agents.roster.batch_players import player_of
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.core.processes import num_cores
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.research.datasets.folder import Shard
from hackmatrix.research.datasets.jax_replay import data_environment, finals_of, rewards_of
from hackmatrix.research.datasets.python_replay import play_plain
from hackmatrix.research.evaluation.games import EvaluationGames
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.plain_games import PlainGame, on_all_cores
from hackmatrix.research.evaluation.seeding import DATA

_GAMES_A_PLACE = 16  # more waste less time at the end of a shard, and take more memory
_STEP_BYTES = 5  # of an action and a reward
_SHARD_BYTES = 96 * 2**20  # of the actions and rewards of a shard, if no game ends early
_PLAIN_SHARD = 1024  # games


class Recording(NamedTuple):
    """The games to play."""

    environment: str  # id
    shards: Iterator[Shard]


def record(agent: AgentName, env: str, limits: Limits, *, greedy: bool = False) -> Recording:
    """Plays games 0 .. episodes - 1 of a seed, as the shards are taken.

    Args:
        agent: its name.
        env: the environment that the user names.
        limits: how many games, their seed, and when they are cut off.
        greedy: whether a network takes its most probable action.

    Raises:
        UserError: its params are damaged, or they do not fit.
    """
    if agent.plays_by_rule(env) and agent.name != "random":  # which is far faster in JAX
        return Recording(ENVIRONMENT_ID, _in_python(agent, limits))
    environment, _, player = player_of(agent, env, greedy=greedy)
    most = max(
        1,
        min(
            _SHARD_BYTES // (_STEP_BYTES * limits.max_steps), _GAMES_A_PLACE * player.games_at_once
        ),
    )
    shards = -(-limits.episodes // most)
    episodes_per_shard = -(-limits.episodes // shards)
    games = EvaluationGames(
        data_environment(environment),
        player,
        limits._replace(episodes=episodes_per_shard),
        record=True,
        rewards=True,
        family=DATA,
    )

    def play(first: int) -> Shard:
        played = games.play_recorded(player.params, first=first)
        results = played.games
        assert played.rewards is not None
        finals = finals_of(results.final_observation)
        shard = Shard(
            first, results.lengths, results.terminated, finals, played.actions, played.rewards
        )
        return shard.head(limits.episodes - first)

    firsts = range(0, limits.episodes, episodes_per_shard)
    return Recording(environment, _in_threads(play, firsts))


def _in_threads(play: Callable[[int], Shard], firsts: range) -> Iterator[Shard]:
    """The shards of games, in order; on CPU several at a time, a core each."""
    workers = num_cores() if jax.default_backend() == "cpu" else 1
    pool = ThreadPoolExecutor(workers)
    under_way: deque[Future[Shard]] = deque()
    try:
        for first in firsts:
            under_way.append(pool.submit(play, first))
            if first == firsts[0] or len(under_way) > workers:  # the first one compiles
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _in_python(agent: AgentName, limits: Limits) -> Iterator[Shard]:
    for first in range(0, limits.episodes, _PLAIN_SHARD):
        numbers = range(first, min(first + _PLAIN_SHARD, limits.episodes))
        games = on_all_cores(
            play_plain,
            [PlainGame(agent.name, limits.seed, n, limits.max_steps) for n in numbers],
        )
        units = np.frombuffer(b"".join(game.units for game in games), np.int32)
        actions = b"".join(game.actions for game in games)
        yield Shard(
            first,
            np.array([len(game.actions) for game in games], np.int32),
            np.array([game.terminated for game in games]),
            np.array([game.final for game in games], np.uint32),
            np.frombuffer(actions, np.uint8),
            rewards_of(units),
        )
