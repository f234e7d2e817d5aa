"""The environment's games in the JAX engine; the functions are those of `engines.Engine`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

from hackmatrix.environments.hackmatrix import training_reward
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.game.engine import state as engine
from hackmatrix.game.foresight import jax_layout
from hackmatrix.game.foresight.jax_imagination import imagine
from hackmatrix.game.jaxgame import actions, batch, undo
from hackmatrix.game.jaxgame.conversion import state_from_engine
from hackmatrix.game.jaxgame.game import new_game
from hackmatrix.game.jaxgame.state import Ending, State
from hackmatrix.game.rules.rewards import UNIT

Array = jax.Array

__all__ = ["imagine"]

Game = State
NAME = "jax"


def new_games(stream: Array, episode: Array) -> tuple[Array, EnvState]:
    """Starts N games; returns observations and states."""
    game, observations = batch.new_games(stream, episode)
    zero = jnp.zeros(stream.shape, jnp.int32)
    return observations, EnvState(game=game, episode_return=zero, episode_length=zero)


def step(state: EnvState, action: Array, **settings: Any) -> tuple[Any, ...]:
    """Takes an action in each of N games; returns what `HackMatrixEnv.step` does."""
    return step_with(batch.step, state, action, **settings)


def step_with(
    play: Callable[..., tuple[State, batch.Step]],
    state: EnvState,
    action: Array,
    *,
    max_episode_steps: int | None,
    auto_reset: bool,
    progress: bool,
) -> tuple[Any, ...]:
    """`step` by `batch.step`, or by another function that does the same."""
    was_running = state.game.over == Ending.RUNNING
    length = state.episode_length + was_running
    stops = None if max_episode_steps is None else length >= max_episode_steps
    before = state.game.player
    game, done = play(state.game, action, stops, auto_reset)
    terminated = done.over != Ending.RUNNING
    truncated = jnp.zeros_like(terminated) if stops is None else stops & ~terminated
    ends = terminated | truncated
    restarted = ends & auto_reset
    gained = jnp.sum(done.parts, axis=1)
    episode_return = state.episode_return + gained
    info = {
        "reward_parts": done.parts * jnp.float32(UNIT),
        "final_observation": done.final_observation,
        "episode_return": episode_return * jnp.float32(UNIT),
        "episode_length": length,
        "episode_done": ends,
        "stage": done.stage,
        "score": done.score,
        "programs_owned": done.programs_owned,
        "won": done.over == Ending.WON,
    }
    new_state = EnvState(
        game=game,
        episode_return=jnp.where(restarted, 0, episode_return),
        episode_length=jnp.where(restarted, 0, length),
    )
    reward = gained * jnp.float32(UNIT)
    if progress:
        reward = training_reward.progress(
            before,
            done.final_observation,
            done.stage_completed,
            was_running & (done.over == Ending.WON),
            was_running & (done.over == Ending.DIED),
        )
    return done.observation, new_state, reward, terminated, truncated, info


def observe(games: State) -> Array:
    """uint8[N, RECORD_SIZE]: the observations of N games."""
    return batch.observations(games)


def tactical_numbers(records: Array) -> Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    # Game by game, as the native engine writes them: in another layout the network's products add
    # in another order, and params differ in their last bits.
    return with_layout_constraint(jax_layout.tactical_numbers(records), Layout((0, 1)))


def action_bits(game: State) -> Array:
    """uint32: the valid actions of one game."""
    return actions.valid_actions(game)


def one_game() -> State:
    """The shapes and dtypes of a game."""
    word = jax.ShapeDtypeStruct((), jnp.uint32)
    game: State = jax.eval_shape(new_game, word, word)
    return game


def from_engine(state: engine.State) -> State:
    """One game, from a state of the Python engine."""
    return jax.tree.map(jnp.asarray, state_from_engine(state))


def without_saved(game: State) -> State:
    """The game without what UNDO restores."""
    return undo.without_rows(game)


def with_saved(game: State, of: State) -> State:
    """The game with what UNDO restores in another."""
    return undo.with_rows(game, of.saved.rows)


def stage(game: State) -> Array:
    """int32, 1..8."""
    return game.stage


def programs_owned(game: State) -> Array:
    """int32, 0..23."""
    return jax.lax.population_count(game.owned).astype(jnp.int32)


def from_state(game: State) -> State:
    """The game as this engine has it."""
    return game


def to_state(game: State) -> State:
    """The game as the JAX engine has it."""
    return game
