"""Batches of games of the native engine, in NumPy arrays."""

from typing import Any, NamedTuple

import numpy as np

from hackmatrix.game.native import _native
from hackmatrix.game.native.layout import ENV_STATE, SAVED_POSITIONS
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.rewards import REWARD_PARTS
from hackmatrix.game.rules.tactical import TACTICAL_SIZE

NO_LIMIT = 2**31 - 1
Array = np.ndarray[Any, Any]


class Games(NamedTuple):
    """N games. Only `reset`, `step` and `conversion.py` write into these arrays."""

    states: Array  # ENV_STATE[N]
    saved: Array  # SAVED_POSITIONS[N], positions that UNDO can restore


class Step(NamedTuple):
    """Results of one step of N games, those of `HackMatrixEnv.step` and the mask."""

    observation: Array  # uint8[N, RECORD_SIZE]
    mask: Array  # uint32[N], the valid actions, bit a for action a
    reward: Array  # float32[N]
    terminated: Array  # bool[N]
    truncated: Array  # bool[N]
    reward_parts: Array  # float32[N, 15]
    final_observation: Array  # uint8[N, RECORD_SIZE], before a restart
    episode_return: Array  # float32[N]
    episode_length: Array  # int32[N]
    episode_done: Array  # bool[N]
    stage: Array  # int32[N]
    score: Array  # int32[N]
    programs_owned: Array  # int32[N]
    won: Array  # bool[N]


def empty_games(number: int) -> Games:
    """Room for games."""
    return Games(np.zeros(number, ENV_STATE), np.zeros(number, SAVED_POSITIONS))


def empty_step(games: int) -> Step:
    """Room for the results of a step."""

    def each(dtype: type, *shape: int) -> Array:
        return np.zeros((games, *shape), dtype)

    return Step(
        observation=each(np.uint8, RECORD_SIZE),
        mask=each(np.uint32),
        reward=each(np.float32),
        terminated=each(np.bool_),
        truncated=each(np.bool_),
        reward_parts=each(np.float32, len(REWARD_PARTS)),
        final_observation=each(np.uint8, RECORD_SIZE),
        episode_return=each(np.float32),
        episode_length=each(np.int32),
        episode_done=each(np.bool_),
        stage=each(np.int32),
        score=each(np.int32),
        programs_owned=each(np.int32),
        won=each(np.bool_),
    )


def reset(streams: Array, episodes: Array, *, threads: int = 1) -> Games:
    """Starts games by stream and episode, uint32[N] each."""
    games = empty_games(len(streams))
    streams, episodes = (np.ascontiguousarray(x, np.uint32) for x in (streams, episodes))
    _native.reset(_bytes(games.states), streams, episodes, threads)
    return games


def observe(games: Games, *, threads: int = 1) -> tuple[Array, Array]:
    """The observations uint8[N, RECORD_SIZE], and the masks uint32[N] as bits."""
    number = len(games.states)
    observation, mask = np.zeros((number, RECORD_SIZE), np.uint8), np.zeros(number, np.uint32)
    _native.observe(_bytes(games.states), observation, mask, threads)
    return observation, mask


def tactical_numbers(records: Array, *, threads: int = 1) -> Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    numbers = np.zeros((len(records), TACTICAL_SIZE), np.int8)
    _native.tactical(records, numbers, threads)
    return numbers


def step(
    games: Games,
    actions: Array,
    *,
    out: Step | None = None,
    max_episode_steps: int | None = None,
    auto_reset: bool = True,
    reward: str = "game",
    threads: int = 1,
) -> Step:
    """Takes an action in each game, which changes the games; the settings are the environment's.

    Args:
        games: N games.
        actions: int32[N]; one that is not valid ends the game.
        out: where the results go, of an earlier step of as many games; None for new arrays.
        max_episode_steps: actions after which an episode is truncated; None for no limit.
        auto_reset: whether the next game of its stream starts when one ends.
        reward: "game" or "progress".
        threads: how many share the games.
    """
    out = out or empty_step(len(games.states))
    _native.step(
        _bytes(games.states),
        _bytes(games.saved),
        actions,
        max_episode_steps or NO_LIMIT,
        auto_reset,
        reward == "progress",
        threads,
        *out,
    )
    return out


def _bytes(structs: Array) -> Array:
    return structs.view(np.uint8).reshape(len(structs), -1)
