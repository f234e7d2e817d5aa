"""Batches of games of the native engine inside compiled programs of JAX, on CPUs."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.native import _native
from hackmatrix.game.native.batch import NO_LIMIT, Step, empty_step
from hackmatrix.game.native.layout import ENV_STATE, SAVED_POSITIONS
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.tactical import TACTICAL_SIZE


class Games(NamedTuple):
    """N games, as bytes."""

    states: jax.Array  # uint8[N, size of ENV_STATE]
    saved: jax.Array  # uint8[N, size of SAVED_POSITIONS]


def reset(streams: jax.Array, episodes: jax.Array, *, threads: int = 1) -> Games:
    """Starts games by stream and episode, uint32[N] each."""
    call = _call("reset", _games(streams.size))
    return Games(*call(streams, episodes, threads=np.int32(threads)))


def observe(games: Games, *, threads: int = 1) -> tuple[jax.Array, jax.Array]:
    """The observations uint8[N, RECORD_SIZE], and the masks uint32[N] as bits."""
    number = games.states.shape[0]
    call = _call("observe", (_rows(number, RECORD_SIZE), _rows(number, dtype=jnp.uint32)))
    observation, mask = call(games.states, threads=np.int32(threads))
    return observation, mask


def tactical_numbers(records: jax.Array, *, threads: int = 1) -> jax.Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    call = _call("tactical", _rows(records.shape[0], TACTICAL_SIZE, dtype=jnp.int8))
    numbers: jax.Array = call(records, threads=np.int32(threads))
    return numbers


def step(
    games: Games,
    actions: jax.Array,
    *,
    max_episode_steps: int | None = None,
    auto_reset: bool = True,
    reward: str = "game",
    threads: int = 1,
) -> tuple[Games, Step]:
    """Takes an action int32[N] in each game; the settings are those of `batch.step`."""
    number = games.states.shape[0]
    results = tuple(_rows(number, *x.shape[1:], dtype=x.dtype) for x in empty_step(1))
    call = _call("step", (*_games(number), *results), aliases={0: 0, 1: 1})
    states, saved, *made = call(
        *games,
        actions,
        max_episode_steps=np.int32(max_episode_steps or NO_LIMIT),
        auto_reset=auto_reset,
        progress=reward == "progress",
        threads=np.int32(threads),
    )
    return Games(states, saved), Step(*made)


def _games(number: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(_rows(number, struct.itemsize) for struct in (ENV_STATE, SAVED_POSITIONS))


def _rows(number: int, *shape: int, dtype: Any = jnp.uint8) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((number, *shape), dtype)


def _call(name: str, results: Any, aliases: dict[int, int] | None = None) -> Any:
    _register()
    return jax.ffi.ffi_call(f"hackmatrix_{name}", results, input_output_aliases=aliases)


@cache
def _register() -> None:
    for name, handler in _native.XLA_HANDLERS.items():
        jax.ffi.register_ffi_target(f"hackmatrix_{name}", handler, platform="cpu")
