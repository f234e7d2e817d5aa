"""The environment's games in the native engine; the functions are those of `engines.Engine`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.game.engine import state as engine
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.native import xla
from hackmatrix.game.native.conversion import games_from_engine
from hackmatrix.game.native.layout import SAVED_POSITIONS, STATE
from hackmatrix.game.native.xla import XlaGames, imagine, tactical_numbers

Array = jax.Array

__all__ = ["imagine", "tactical_numbers"]

Game = XlaGames
NAME = "native"
_FIELDS: Any = STATE.fields
_STAGE = _FIELDS["stage"][1]  # its byte
_OWNED = _FIELDS["position"][1] + _FIELDS["position"][0].fields["owned"][1]  # the first of 4


def new_games(stream: Array, episode: Array) -> tuple[Array, EnvState]:
    """Starts N games; returns observations and states."""
    games, zero = xla.reset(stream, episode), jnp.zeros(stream.shape, jnp.int32)
    return xla.observe(games), EnvState(games, episode_return=zero, episode_length=zero)


def step(
    state: EnvState,
    action: Array,
    *,
    max_episode_steps: int | None,
    auto_reset: bool,
    progress: bool,
) -> tuple[Any, ...]:
    """Takes an action in each of N games; returns what `HackMatrixEnv.step` does."""
    stepped = xla.step(
        state.game,
        state.episode_return,
        state.episode_length,
        action.astype(jnp.int32),
        max_episode_steps=max_episode_steps,
        auto_reset=auto_reset,
        progress=progress,
    )
    info = stepped.step._asdict()
    results = [info.pop(name) for name in ("observation", "reward", "terminated", "truncated")]
    del info["mask"]
    after = EnvState(stepped.games, stepped.episode_return, stepped.episode_length)
    return results[0], after, *results[1:], info


def observe(games: XlaGames) -> Array:
    """uint8[N, RECORD_SIZE]: the observations of N games."""
    return xla.observe(games)


def action_bits(game: XlaGames) -> Array:
    """uint32: the valid actions of one game."""
    return game.mask


def one_game() -> XlaGames:
    """The shapes and dtypes of a game."""

    def bytes_of(struct: np.dtype[np.void]) -> Any:
        return jax.ShapeDtypeStruct((struct.itemsize,), jnp.uint8)

    mask: Any = jax.ShapeDtypeStruct((), jnp.uint32)
    return XlaGames(bytes_of(STATE), bytes_of(SAVED_POSITIONS), mask)


def from_engine(state: engine.State) -> XlaGames:
    """One game, from a state of the Python engine."""
    made = games_from_engine([state])
    of_bytes = (jnp.asarray(structs.view(np.uint8).reshape(1, -1)) for structs in made[:2])
    games: XlaGames = jax.tree.map(lambda x: x[0], xla.with_masks(*of_bytes))
    return games


def without_saved(game: XlaGames) -> XlaGames:
    """The game without what UNDO restores."""
    return game._replace(saved=())


def with_saved(game: XlaGames, of: XlaGames) -> XlaGames:
    """The game with what UNDO restores in another."""
    return game._replace(saved=of.saved)


def stage(game: XlaGames) -> Array:
    """int32, 1..8."""
    return game.states[..., _STAGE].astype(jnp.int32)


def programs_owned(game: XlaGames) -> Array:
    """int32, 0..23."""
    bits = jax.lax.population_count(game.states[..., _OWNED : _OWNED + 4])
    return jnp.sum(bits, axis=-1, dtype=jnp.int32)


def from_state(game: State) -> XlaGames:
    """Games, which may have several leading axes, from those of the JAX engine."""
    return _on_one_axis(xla.games_of, game, game.over.shape)


def to_state(game: XlaGames) -> State:
    """The games as the JAX engine has them."""
    return _on_one_axis(xla.state_of, game, game.mask.shape)


def _on_one_axis(convert: Any, games: Any, axes: tuple[int, ...]) -> Any:
    """Converts games with any leading axes as if they had one."""
    flat = jax.tree.map(lambda x: jnp.reshape(x, (-1, *x.shape[len(axes) :])), games)
    return jax.tree.map(lambda x: jnp.reshape(x, (*axes, *x.shape[1:])), convert(flat))
