"""Batches of games of the native engine inside compiled programs of JAX, on CPUs."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.processes import num_cores
from hackmatrix.game.engine import state as engine
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.jaxgame import undo
from hackmatrix.game.jaxgame.conversion import state_from_engine
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.native import _native
from hackmatrix.game.native.batch import NO_LIMIT
from hackmatrix.game.native.layout import SAVED_POSITIONS, STATE, Step, empty_step
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.programs import MAX_SAVED_STATES
from hackmatrix.game.rules.tactical import TACTICAL_SIZE

_ANY_STATE = state_from_engine(engine.State(player=engine.Player(0), dice=Dice(0, 0, 0), exit=0))
_LEAVES, _TREE = jax.tree.flatten(undo.without_rows(_ANY_STATE))
_WORDS_SAVED = _ANY_STATE.saved.rows.shape[-1]

for _name, _handler in _native.XLA_HANDLERS.items():
    jax.ffi.register_ffi_target(f"hackmatrix_{_name}", _handler, platform="cpu")


class XlaGames(NamedTuple):
    """N games, or one without the leading axis."""

    states: jax.Array  # uint8[N, size of STATE]
    saved: jax.Array | tuple[()]  # uint8[N, size of SAVED_POSITIONS]; () for games without UNDO
    mask: jax.Array  # uint32[N], the valid actions, bit a for action a


class Stepped(NamedTuple):
    """N games after a step, the return and length of their episodes, and its results."""

    games: XlaGames
    episode_return: jax.Array  # int32[N], in units of 0.005
    episode_length: jax.Array  # int32[N]
    step: Step


def reset(streams: jax.Array, episodes: jax.Array) -> XlaGames:
    """Starts games by stream and episode, uint32[N] each."""
    return XlaGames(*_call("reset", _games(streams.size))(streams, episodes))


def observe(games: XlaGames) -> jax.Array:
    """uint8[N, RECORD_SIZE]: the observations."""
    records: jax.Array = _call("observe", _rows(len(games.mask), RECORD_SIZE))(games.states)
    return records


def imagine(
    records: jax.Array,
    remembered: jax.Array,
    saved: jax.Array,
    streams: jax.Array,
    episodes: jax.Array,
) -> XlaGames:
    """Games that look as records, see `game/foresight/jax_imagination.py`; their clock is 0."""
    call = _call("imagine", _games(streams.size))
    return XlaGames(*call(records, remembered, saved, streams, episodes))


def tactical_numbers(records: jax.Array) -> jax.Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    call = _call("tactical", _rows(len(records), TACTICAL_SIZE, dtype=jnp.int8))
    numbers: jax.Array = call(records)
    return numbers


def row_sums(
    records: jax.Array,
    definition: Sequence[np.ndarray[Any, Any]],
    player: jax.Array,
    direction: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Sums of the rows that records have in tables of weights.

    Args:
        records: uint8[N, RECORD_SIZE].
        definition: the arrays of `Definition` in `agents/networks/rows.py`.
        player: float32[R, H], the weights of the player's view.
        direction: float32[Q, D], those of the views of directions.

    Returns:
        float32[N, H] and float32[N, 4, D].
    """
    shapes = (len(records), player.shape[1]), (len(records), 4, direction.shape[1])
    results = tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)
    sums: tuple[jax.Array, jax.Array] = _call("row_sums", results, vmap_method="sequential")(
        records, *definition, player, direction
    )
    return sums


def row_gradients(
    records: jax.Array,
    definition: Sequence[np.ndarray[Any, Any]],
    counts: tuple[int, int],
    player: jax.Array,
    direction: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """The gradients float32[R, H] and [Q, D] of the weights of `row_sums`.

    Args:
        records: uint8[N, RECORD_SIZE].
        definition: as there.
        counts: R and Q, numbers of rows.
        player: float32[N, H], the gradient of the first sums.
        direction: float32[N, 4, D], that of the others.
    """
    widths = player.shape[1], direction.shape[2]
    results = tuple(map(lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32), counts, widths))
    call = _call("row_gradients", results, vmap_method="sequential")
    gradients: tuple[jax.Array, jax.Array] = call(records, *definition, player, direction)
    return gradients


def step(
    games: XlaGames,
    episode_return: jax.Array,
    episode_length: jax.Array,
    actions: jax.Array,
    *,
    max_episode_steps: int | None = None,
    auto_reset: bool = True,
    progress: bool = False,
) -> Stepped:
    """Takes an action int32[N] in each game; the settings are those of `batch.step`."""
    num_games = actions.size
    of_states, of_saved, _ = _games(num_games)
    counts = (_rows(num_games, dtype=jnp.int32),) * 2
    of_step = (_rows(num_games, *x.shape[1:], dtype=x.dtype) for x in empty_step(1))
    call = _call("step", (of_states, of_saved, *counts, *of_step), aliases={i: i for i in range(4)})
    states, saved, episode_return, episode_length, *arrays = call(
        games.states,
        games.saved,
        episode_return,
        episode_length,
        actions,
        max_episode_steps=np.int32(max_episode_steps or NO_LIMIT),
        auto_reset=auto_reset,
        progress=progress,
    )
    results = Step(*arrays)
    mask: Any = results.mask
    return Stepped(XlaGames(states, saved, mask), episode_return, episode_length, results)


def state_of(games: XlaGames) -> State:
    """The games as the JAX engine has them; without rows, if the games are without saved ones."""
    num_games = games.mask.size
    words = _call("state_words", _rows(num_games, len(_LEAVES), dtype=jnp.uint32))(games.states)
    leaves = [word.astype(leaf.dtype) for word, leaf in zip(words.T, _LEAVES, strict=True)]
    state = jax.tree.unflatten(_TREE, leaves)
    if isinstance(games.saved, tuple):
        return state
    rows = _rows(num_games, MAX_SAVED_STATES, _WORDS_SAVED, dtype=jnp.uint32)
    return undo.with_rows(state, _call("saved_words", rows)(games.saved, games.states))


def games_of(state: State) -> XlaGames:
    """Games of the JAX engine; without saved ones, if the state is without rows.

    Raises:
        JaxRuntimeError or ValueError: a state, or a row that UNDO can restore, is not legal.
    """
    rows: Any = state.saved.rows
    of_states, of_saved, _ = _games(state.over.size)
    leaves = jax.tree.leaves(undo.without_rows(state))
    words = jnp.stack([leaf.astype(jnp.uint32) for leaf in leaves], axis=1)
    states = _call("states", of_states)(words)
    saved = () if isinstance(rows, tuple) else _call("saved", of_saved)(rows, states)
    return with_masks(states, saved)


def with_masks(states: jax.Array, saved: jax.Array | tuple[()]) -> XlaGames:
    """Games from their bytes."""
    *_, of_masks = _games(len(states))
    return XlaGames(states, saved, _call("masks", of_masks)(states))


def _games(num_games: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    bytes_of = (_rows(num_games, struct.itemsize) for struct in (STATE, SAVED_POSITIONS))
    return *bytes_of, _rows(num_games, dtype=jnp.uint32)


def _rows(num_games: int, *shape: int, dtype: Any = jnp.uint8) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((num_games, *shape), dtype)


def _call(
    name: str,
    results: Any,
    aliases: dict[int, int] | None = None,
    vmap_method: str | None = None,
) -> Any:
    """The custom call; the devices of this process share the cores."""
    threads = max(1, num_cores() // jax.local_device_count("cpu"))
    call = jax.ffi.ffi_call(
        f"hackmatrix_{name}", results, vmap_method=vmap_method, input_output_aliases=aliases
    )
    return partial(call, threads=np.int32(threads))
