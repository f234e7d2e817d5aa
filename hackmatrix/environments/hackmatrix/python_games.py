"""The environment's games in the Python engine: slow, but by the rules as one reads them.

Compiled programs call back to Python for each game, which is kept as the JAX engine keeps it. The
functions are those of `engines.Engine`. The reward `progress` may differ in its last bit, as
compiled programs round it after each term.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.environments.hackmatrix.jax_games import (
    Game,
    from_engine,
    from_state,
    imagined,
    one_game,
    programs_owned,
    stage,
    to_state,
    with_saved,
    without_saved,
)
from hackmatrix.environments.hackmatrix.over_games import over_games
from hackmatrix.game.engine import Game as PythonGame
from hackmatrix.game.engine.state import Ending
from hackmatrix.game.engine.training_reward import progress as progress_of
from hackmatrix.game.foresight.python_layout import tactical_numbers as tactical_numbers_of
from hackmatrix.game.jaxgame.conversion import state_from_engine, state_to_engine
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.game.rules.tactical import TACTICAL_SIZE

Array = jax.Array

__all__ = [
    "Game",
    "from_engine",
    "from_state",
    "imagined",
    "one_game",
    "programs_owned",
    "stage",
    "to_state",
    "with_saved",
    "without_saved",
]

NAME = "python"

_WORD = jax.ShapeDtypeStruct((), jnp.uint32)
_RECORD = jax.ShapeDtypeStruct((RECORD_SIZE,), jnp.uint8)


def new_games(stream: Array, episode: Array) -> tuple[Array, EnvState]:
    """Starts N games; returns observations and states."""
    number: Any = jax.ShapeDtypeStruct((), jnp.int32)
    state = EnvState(one_game(), number, number)
    begun: tuple[Array, EnvState] = _of_each(_begun, (_RECORD, state), stream, episode)
    return begun


def _begun(stream: Any, episode: Any) -> tuple[Any, EnvState]:
    game, zero = PythonGame.new(int(stream), int(episode)), np.int32(0)
    return _record(game), _state(game, zero, zero)


def _state(game: PythonGame, episode_return: Any, episode_length: Any) -> EnvState:
    return EnvState(state_from_engine(game.state), episode_return, episode_length)


def step(
    state: EnvState,
    action: Array,
    *,
    max_episode_steps: int | None,
    auto_reset: bool,
    progress: bool,
) -> tuple[Any, ...]:
    """Takes an action in each of N games; returns what `HackMatrixEnv.step` does."""
    rule = partial(_stepped, limit=max_episode_steps, auto_reset=auto_reset, in_progress=progress)
    example = rule(_begun(0, 0)[1], 0)  # for its shapes and dtypes
    results: tuple[Any, ...] = _of_each(rule, example, state, action)
    return results


def _stepped(
    state: EnvState, action: Any, *, limit: int | None, auto_reset: bool, in_progress: bool
) -> tuple[Any, ...]:
    game = PythonGame(state_to_engine(state.game))
    was_running, before = game.state.over is None, replace(game.state.player)
    parts, completed = np.zeros(len(REWARD_PARTS), np.int32), False
    if was_running and not 0 <= action < NUM_ACTIONS:
        game.state.over = Ending.INVALID_ACTION
    elif was_running:
        outcome = game.step(int(action))
        parts[:], completed = list(outcome.parts.values()), outcome.stage_completed
    over, unit = game.state.over, np.float32(UNIT)
    gained = parts.sum(dtype=np.int32)
    episode_return = state.episode_return + gained
    length = np.int32(state.episode_length + was_running)
    truncated = over is None and limit is not None and bool(length >= limit)
    ended, record = over is not None or truncated, _record(game)
    info = {
        "reward_parts": parts.astype(np.float32) * unit,
        "final_observation": record,
        "episode_return": np.float32(episode_return) * unit,
        "episode_length": length,
        "episode_done": np.bool_(ended),
        "stage": np.int32(game.state.stage),
        "score": np.int32(game.state.player.score),
        "programs_owned": np.int32(len(game.state.owned)),
        "won": np.bool_(over == Ending.WON),
    }
    reward = np.float32(gained) * unit
    if in_progress:
        ends_now = over if was_running else None
        paid = progress_of(
            before,
            game.state.player,
            completed=completed,
            won=ends_now == Ending.WON,
            died=ends_now == Ending.DIED,
        )
        reward = np.float32(paid)
    if ended and auto_reset:
        dice = game.state.dice
        record, after = _begun(dice.stream, dice.episode + 1)
    else:
        after = _state(game, episode_return, length)
    return record, after, reward, np.bool_(over is not None), np.bool_(truncated), info


def observe(games: State) -> Array:
    """uint8[N, RECORD_SIZE]: the observations of N games."""
    records: Array = _of_each(lambda game: _record(_game(game)), _RECORD, games)
    return records


def tactical_numbers(records: Array) -> Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    one = jax.ShapeDtypeStruct((TACTICAL_SIZE,), jnp.int8)

    def numbers(record: Any) -> Any:
        return np.array(tactical_numbers_of(np.asarray(record).tobytes()), np.int8)

    made: Array = _of_each(numbers, one, records)
    return made


def _bits(games: State) -> Array:
    def bits(game: State) -> Any:
        return np.uint32(sum(1 << action for action in _game(game).valid_actions()))

    words: Array = _of_each(bits, _WORD, games)
    return words


action_bits = over_games(_bits, lambda _: _WORD)


def _game(game: State) -> PythonGame:
    return PythonGame(state_to_engine(game))


def _record(game: PythonGame) -> Any:
    return np.frombuffer(game.observation(), np.uint8)


def _of_each(rule: Callable[..., Any], result: Any, *trees: Any) -> Any:
    """The results of a rule for each of N games, stacked; `result` has the shapes for one."""
    games = len(jax.tree.leaves(trees)[0])

    def all_games(*trees: Any) -> Any:
        here = jax.tree.map(np.asarray, trees)
        made = [rule(*jax.tree.map(lambda x, i=i: x[i], here)) for i in range(games)]
        return jax.tree.map(lambda *each: np.stack(each), *made)

    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((games, *x.shape), x.dtype), result)
    return jax.pure_callback(all_games, shapes, *trees)
