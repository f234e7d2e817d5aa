"""The public environment: gymnax's six values, an action mask, and features on demand."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame import actions, batch, observation
from hackmatrix.jaxgame.feature_rows import FeatureRows
from hackmatrix.jaxgame.game import new_game
from hackmatrix.jaxgame.state import Ending, State
from hackmatrix.rules.actions import NUM_ACTIONS
from hackmatrix.rules.chance import EVALUATION_STREAM
from hackmatrix.rules.observation import FEATURE_SIZE, RECORD_SIZE
from hackmatrix.rules.rewards import REWARD_PARTS, UNIT


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class EnvState:
    """A game and the running sums of its episode."""

    game: State
    episode_return: jax.Array  # int32, in units of 0.005
    episode_length: jax.Array  # int32, actions taken


class HackMatrixEnv:
    """HackMatrix as an environment of one game; `jax.vmap` of its functions is the fast path.

    Observation: uint8[RECORD_SIZE], the compact record of `rules.observation`.
    Features: float32[1545] ("classic") or float32[1946] ("full"), made from it by `features`.
    Actions: 28, `rules.actions.ACTION_NAMES`; the mask is `action_mask`.
    Reward: float32, the sum of the 15 parts of section 11.
    Episode end: terminated by winning, dying or an invalid action; truncated only by
    `max_episode_steps`. The same call starts the next game (`auto_reset`); without it, a game that
    has ended stays as it is and goes on being terminated with reward 0.
    """

    num_actions = NUM_ACTIONS
    observation_size = RECORD_SIZE

    def __init__(
        self,
        observation: str = "full",
        max_episode_steps: int | None = None,
        auto_reset: bool = True,
    ) -> None:
        """Choose the features and the end of episodes.

        Args:
            observation: layout of the features, "classic" or "full".
            max_episode_steps: actions after which an episode is truncated; None for no limit.
            auto_reset: whether `step` starts the next game when one ends.

        Raises:
            ValueError: no such layout, or a limit below 1.
        """
        if observation not in FEATURE_SIZE:
            known = ", ".join(FEATURE_SIZE)
            raise ValueError(f"observation must be one of {known}, got {observation!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        self.observation = observation
        self.max_episode_steps = max_episode_steps
        self.auto_reset = auto_reset
        self.feature_size = FEATURE_SIZE[observation]
        self.feature_rows = FeatureRows(observation)
        self._new_games = batch.over_games(_new_games, _new_game_results)
        self._step = batch.over_games(self._step_games, _step_results)

    def reset(self, key: jax.Array) -> tuple[jax.Array, EnvState]:
        """Start the first game of a stream made from a key."""
        stream = jax.random.bits(key, (), jnp.uint32) & jnp.uint32(EVALUATION_STREAM - 1)
        return self.reset_game(stream, jnp.uint32(0))

    def reset_game(self, stream: jax.Array, episode: jax.Array) -> tuple[jax.Array, EnvState]:
        """Start the game with this name (uint32 each); the stream's top bit is for evaluation."""
        return self._new_games(stream.astype(jnp.uint32), episode.astype(jnp.uint32))

    def step(
        self, key: jax.Array | None, state: EnvState, action: jax.Array
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Take an action.

        Args:
            key: not needed, the dice are in the state.
            state: the game.
            action: int, 0..27; one that is not valid ends the game.

        Returns:
            Observation, state, reward, terminated, truncated, and `info`: `reward_parts`
            float32[15], `final_observation` (before auto-reset, always there), `episode_return`
            and `episode_length` (this step included), `episode_done`, `stage`, `score`,
            `programs_owned`, `won`.
        """
        del key
        return self._step(state, action)

    def action_mask(self, state: EnvState) -> jax.Array:
        """bool[28]: the actions that can be taken now."""
        return (self.action_bits(state) >> jnp.arange(NUM_ACTIONS, dtype=jnp.uint32)) & 1 == 1

    def action_bits(self, state: EnvState) -> jax.Array:
        """uint32: the mask as bits, bit a for action a."""
        return actions.valid_actions(state.game)

    def features(self, observation_: jax.Array) -> jax.Array:
        """float32[feature_size]: the features of one observation."""
        return observation.features(observation_, self.observation)

    def _step_games(self, state: EnvState, action: jax.Array) -> tuple[Any, ...]:
        was_running = state.game.over == Ending.RUNNING
        length = state.episode_length + was_running
        limit = self.max_episode_steps
        stops = None if limit is None else length >= limit
        game, done = batch.step(state.game, action, stops, self.auto_reset)
        terminated = done.over != Ending.RUNNING
        truncated = jnp.zeros_like(terminated) if stops is None else stops & ~terminated
        ends = terminated | truncated
        restarted = ends & self.auto_reset
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
        return done.observation, new_state, reward, terminated, truncated, info


def _new_games(stream: jax.Array, episode: jax.Array) -> tuple[jax.Array, EnvState]:
    game, observations = batch.new_games(stream, episode)
    zero = jnp.zeros(stream.shape, jnp.int32)
    return observations, EnvState(game=game, episode_return=zero, episode_length=zero)


def _new_game_results(stream: Any, episode: Any) -> Any:
    state = EnvState(
        game=jax.eval_shape(new_game, stream, episode),
        episode_return=_scalar(jnp.int32),
        episode_length=_scalar(jnp.int32),
    )
    return _RECORD, state


def _step_results(state: Any, action: Any) -> Any:
    del action
    number, real, flag = _scalar(jnp.int32), _scalar(jnp.float32), _scalar(jnp.bool)
    info = {
        "reward_parts": jax.ShapeDtypeStruct((len(REWARD_PARTS),), jnp.float32),
        "final_observation": _RECORD,
        "episode_return": real,
        "episode_length": number,
        "episode_done": flag,
        "stage": number,
        "score": number,
        "programs_owned": number,
        "won": flag,
    }
    return _RECORD, state, real, flag, flag, info


def _scalar(dtype: Any) -> Any:
    return jax.ShapeDtypeStruct((), dtype)


_RECORD = jax.ShapeDtypeStruct((RECORD_SIZE,), jnp.uint8)
