"""Wrappers that change an environment's interface. They can be nested and work under `jax.vmap`.

A wrapper is an `Environment` too; members that it does not change are those of the wrapped
environment, its member `env`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import (
    Environment,
    PyTree,
    Step,
    optional_members,
)
from hackmatrix.environments.interface.spaces import Box, Discrete, StepSpec, trace_spec

__all__ = [
    "EnvParams",
    "FloatObservations",
    "GymnaxSignature",
    "LogEpisodes",
    "LogState",
    "NoAutoReset",
    "OneEpisode",
    "Wrapper",
]

Array = jax.Array

# Members of HackMatrix that take the unwrapped state.
_OF_STATES = frozenset({"action_bits", "from_text", "observe", "to_text"})


class Wrapper:
    """Base class of wrappers: changes nothing. Subclasses override what they change."""

    hides: ClassVar[frozenset[str]] = frozenset()  # members that would be wrong after wrapping
    # Whether a `step` of its own may truncate where the wrapped environment does not.
    adds_truncation: ClassVar[bool] = True
    num_actions: int
    feature_size: int

    def __init__(self, env: Environment) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name == "env" or name.startswith("_") or name in self.hides:
            raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)
        if (
            name == "never_truncates"
            and self.adds_truncation
            and type(self).step is not Wrapper.step
        ):
            return False
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"

    def wrap_reset(self, observation: PyTree, state: PyTree) -> tuple[PyTree, PyTree]:
        """Converts the results of the wrapped `reset` to those of this one."""
        return observation, state

    def within(self, state: PyTree) -> PyTree:
        """The state of the wrapped environment."""
        return state

    @property
    def spec(self) -> StepSpec:
        """Shapes and dtypes of the values that `step` returns."""
        return trace_spec(self)

    def reset(self, key: Array) -> tuple[PyTree, PyTree]:
        """Starts a game; returns observation and state."""
        return self.wrap_reset(*self.env.reset(key))

    @property
    def reset_game(self) -> Callable[[Array, Array], tuple[PyTree, PyTree]]:
        """`reset_game(stream, episode)`, if the wrapped environment has it."""
        reset_game = self.__getattr__("reset_game")
        return lambda stream, episode: self.wrap_reset(*reset_game(stream, episode))

    def step(self, key: Array, state: PyTree, action: Array) -> Step:
        """Takes an action; see `Environment`."""
        return self.env.step(key, state, action)

    def action_mask(self, state: PyTree) -> Array:
        """bool[num_actions], True where the action is valid."""
        return self.env.action_mask(self.within(state))

    def features(self, observation: PyTree) -> Array:
        """The feature vector of an observation, float32[feature_size], the network's input."""
        return self.env.features(observation)


class FloatObservations(Wrapper):
    """Observations are the features of the compact observation, float32[feature_size]."""

    adds_truncation = False
    # These read compact observations.
    hides = frozenset({"feature_rows", "imagination", "observe", "report"})

    @property
    def observation_space(self) -> Box:
        """Unbounded float32[feature_size]."""
        return Box(-np.inf, np.inf, (self.feature_size,))

    def wrap_reset(self, observation: PyTree, state: PyTree) -> tuple[Array, PyTree]:
        """The features of the first observation, and the state."""
        return self.env.features(observation), state

    def step(self, key: Array, state: PyTree, action: Array) -> Step:
        """Takes an action; the final observation is float32[feature_size] too."""
        observation, state, *others, info = self.env.step(key, state, action)
        final = self.env.features(info["final_observation"])
        info = {**info, "final_observation": final}
        return self.env.features(observation), state, *others, info

    def features(self, observation: Array) -> Array:
        """The observation itself."""
        return observation


class LogState(NamedTuple):
    """A state, with return and length of its episode and of the last finished one."""

    env_state: PyTree
    episode_return: Array  # float32, sum of rewards so far
    episode_length: Array  # int32, actions taken so far
    returned_episode_returns: Array  # float32, 0 before the first end of an episode
    returned_episode_lengths: Array  # int32, likewise


class LogEpisodes(Wrapper):
    """Tracks return and length of episodes in the state, and reports them in `info`.

    `info` has `returned_episode` (bool, whether this step ended the episode),
    `returned_episode_returns` and `returned_episode_lengths` (of the last finished episode).
    """

    adds_truncation = False
    hides = _OF_STATES

    def wrap_reset(self, observation: PyTree, state: PyTree) -> tuple[PyTree, LogState]:
        """The observation, and a state with an empty log."""
        real, number = jnp.float32(0), jnp.int32(0)
        return observation, LogState(state, real, number, real, number)

    def within(self, state: LogState) -> PyTree:
        """The state without its log."""
        return state.env_state

    def step(self, key: Array, state: LogState, action: Array) -> Step:
        """Takes an action; the class docstring lists the additions to `info`."""
        observation, env_state, reward, terminated, truncated, info = self.env.step(
            key, state.env_state, action
        )
        ended = terminated | truncated
        total, length = state.episode_return + reward, state.episode_length + 1
        state = LogState(
            env_state=env_state,
            episode_return=jnp.where(ended, 0, total),
            episode_length=jnp.where(ended, 0, length),
            returned_episode_returns=jnp.where(ended, total, state.returned_episode_returns),
            returned_episode_lengths=jnp.where(ended, length, state.returned_episode_lengths),
        )
        log = {
            "returned_episode": ended,
            "returned_episode_returns": state.returned_episode_returns,
            "returned_episode_lengths": state.returned_episode_lengths,
        }
        return observation, state, reward, terminated, truncated, info | log


class OneEpisode(NamedTuple):
    """A state, and the results of the last step."""

    env_state: PyTree  # after the end of an episode, the first state of the next
    observation: PyTree
    terminated: Array  # bool
    truncated: Array  # bool
    info: dict[str, PyTree]  # zeros before the first step


class NoAutoReset(Wrapper):
    """Disables auto-reset: after the end of a game, each step returns the same, with reward 0.

    The mask is then all False. For HackMatrix, `auto_reset=False` does the same faster; its states
    then also show the end of the game.
    """

    hides = _OF_STATES

    def wrap_reset(self, observation: PyTree, state: PyTree) -> tuple[PyTree, OneEpisode]:
        """The observation, and the state of a running game."""
        info = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), trace_spec(self.env).info)
        return observation, OneEpisode(state, observation, jnp.bool_(False), jnp.bool_(False), info)

    def within(self, state: OneEpisode) -> PyTree:
        """The state of the wrapped environment."""
        return state.env_state

    def action_mask(self, state: OneEpisode) -> Array:
        """bool[num_actions], True where the action is valid; all False after the end."""
        return super().action_mask(state) & ~(state.terminated | state.truncated)

    def step(self, key: Array, state: OneEpisode, action: Array) -> Step:
        """Takes an action; after the end of the game, changes nothing."""
        ended = state.terminated | state.truncated
        _, env_state, reward, terminated, truncated, info = self.env.step(
            key, state.env_state, action
        )
        observation = info["final_observation"]
        after = OneEpisode(env_state, observation, terminated, truncated, info)
        after = jax.tree.map(lambda old, new: jnp.where(ended, old, new), state, after)
        return (
            after.observation,
            after,
            jnp.where(ended, 0, reward),
            after.terminated,
            after.truncated,
            after.info,
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EnvParams:
    """The params of gymnax environments, which are passed at each call; informative only."""

    max_steps_in_episode: int | None = field(metadata={"static": True})


class GymnaxSignature(Wrapper):
    """The signature of gymnax: `params` at each call, spaces as methods, `default_params`.

    Programs written for gymnax use observations as network input, so make HackMatrix with float
    ones, such as `observation="full"`.
    """

    adds_truncation = False

    @property
    def name(self) -> str:
        """The environment's id."""
        return optional_members(self.env).id

    @property
    def default_params(self) -> EnvParams:
        """The only valid params: the limit with which the environment was made."""
        return EnvParams(optional_members(self.env).max_episode_steps)

    def reset(self, key: Array, params: EnvParams | None = None) -> tuple[PyTree, PyTree]:
        """Starts a game; returns observation and state."""
        self._check(params)
        return super().reset(key)

    def step(
        self, key: Array, state: PyTree, action: Array, params: EnvParams | None = None
    ) -> Step:
        """Takes an action; see `Environment`."""
        self._check(params)
        return super().step(key, state, action)

    def observation_space(self, params: EnvParams | None = None) -> Box:
        """The space of observations."""
        self._check(params)
        space: Box = self.__getattr__("observation_space")
        return space

    def action_space(self, params: EnvParams | None = None) -> Discrete:
        """The space of actions."""
        self._check(params)
        return Discrete(self.num_actions)

    def _check(self, params: EnvParams | None) -> None:
        if params is not None and params != self.default_params:
            raise UserError(
                f"params must be default_params, {self.default_params}, got {params}; a limit is "
                "given when the environment is made: max_episode_steps"
            )
