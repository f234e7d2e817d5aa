"""Batches of games of the native engine, in NumPy arrays."""

from typing import Any

import numpy as np

from hackmatrix.game.native import _native
from hackmatrix.game.native.layout import Games, Step, empty_games, empty_step
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import FEATURE_SIZE, RECORD_SIZE
from hackmatrix.game.rules.tactical import SCALES, TACTICAL_SIZE

Array = np.ndarray[Any, Any]
NO_LIMIT = 2**31 - 1
_NOBODY = np.zeros(0, np.bool_)


def reset(streams: Array, episodes: Array, *, threads: int = 1) -> Games:
    """Starts games by stream and episode, uint32[N] each."""
    games = empty_games(len(streams))
    streams, episodes = (np.ascontiguousarray(x, np.uint32) for x in (streams, episodes))
    _native.reset(_bytes(games.states), streams, episodes, threads)
    return games


def observe(games: Games, *, threads: int = 1) -> tuple[Array, Array]:
    """The observations uint8[N, RECORD_SIZE], and the masks uint32[N] as bits."""
    count = len(games.states)
    observation, mask = np.zeros((count, RECORD_SIZE), np.uint8), np.zeros(count, np.uint32)
    _native.observe(_bytes(games.states), observation, mask, threads)
    return observation, mask


def flags(mask: Array) -> Array:
    """bool[N, 28]: masks that are uint32[N], bit a for action a."""
    of_bytes = mask.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)
    return np.unpackbits(of_bytes, axis=1, count=NUM_ACTIONS, bitorder="little").view(np.bool_)


def tactical_numbers(records: Array, *, threads: int = 1) -> Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    numbers = np.zeros((len(records), TACTICAL_SIZE), np.int8)
    _native.tactical(records, numbers, threads)
    return numbers


def features(records: Array, layout: str, *, threads: int = 1) -> Array:
    """float32[N, 1545], [N, 1946] or [N, 432]: the features of observations, by layout."""
    if layout == "tactical":
        return tactical_numbers(records, threads=threads) * np.array(SCALES, np.float32)
    made = np.empty((len(records), FEATURE_SIZE[layout]), np.float32)
    _native.features(records, made, layout == "full", threads)
    return made


def scripted_actions(
    records: Array, weights: Array, forbidden: int = 0, *, threads: int = 1
) -> Array:
    """int32[N]: the actions of the scripted player on observations.

    Args:
        records: uint8[N, RECORD_SIZE].
        weights: float64[54], those of `agents/scripted/weights.py` in their order.
        forbidden: bits of the actions that it takes only if it knows no other.
        threads: how many share the work.
    """
    actions = np.zeros(len(records), np.int32)
    _native.scripted(np.ascontiguousarray(records), weights, forbidden, actions, threads)
    return actions


def step(
    games: Games,
    actions: Array,
    *,
    held: Array | None = None,
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
        held: bool[N], games that take no action and are only observed; their other results are 0.
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
        games.episode_return,
        games.episode_length,
        _NOBODY if held is None else held,
        actions,
        max_episode_steps or NO_LIMIT,
        auto_reset,
        reward == "progress",
        threads,
        *out,
    )
    return out


def check(games: Games, *, threads: int = 1) -> None:
    """Raises `ValueError` if a game is not legal, or a position that UNDO can restore."""
    _native.check(_bytes(games.states), _bytes(games.saved), threads)


def _bytes(structs: Array) -> Array:
    return structs.view(np.uint8).reshape(len(structs), structs.dtype.itemsize)
