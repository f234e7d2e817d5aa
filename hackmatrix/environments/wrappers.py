"""Wrappers: an environment with another face. They nest, and `jax.vmap` of them stays fast.

A wrapper is an `Environment` too; what it does not change it has from the environment within, which
is its member `env`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.errors import UserError
from hackmatrix.interface.environment import Environment, PyTree, Step
from hackmatrix.interface.spaces import Box, Discrete, StepSpec, traced_spec

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

# Members of HackMatrix whose states are those of the environment within.
_OF_STATES = frozenset({"action_bits", "from_text", "observe", "to_text"})


class Wrapper:
    """Changes nothing. Others override what they change."""

    hides: ClassVar[frozenset[str]] = frozenset()  # members that would no longer be right
    num_actions: int
    feature_size: int

    def __init__(self, env: Environment) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name == "env" or name.startswith("_") or name in self.hides:
            raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r})"

    def started(self, observation: PyTree, state: PyTree) -> tuple[PyTree, PyTree]:
        """What `reset` returns where the environment within returns these two."""
        return observation, state

    def within(self, state: PyTree) -> PyTree:
        """The state of the environment within."""
        return state

    @property
    def spec(self) -> StepSpec:
        """Shapes and dtypes of what `step` returns."""
        return traced_spec(self)

    def reset(self, key: Array) -> tuple[PyTree, PyTree]:
        """Starts a game: observation and state."""
        return self.started(*self.env.reset(key))

    @property
    def reset_game(self) -> Callable[[Array, Array], tuple[PyTree, PyTree]]:
        """`reset_game(stream, episode)`, if the environment within has it."""
        reset_game = self.__getattr__("reset_game")
        return lambda stream, episode: self.started(*reset_game(stream, episode))

    def step(self, key: Array, state: PyTree, action: Array) -> Step:
        """Takes an action; see `Environment`."""
        return self.env.step(key, state, action)

    def action_mask(self, state: PyTree) -> Array:
        """bool[num_actions], True where the action is valid."""
        return self.env.action_mask(self.within(state))

    def features(self, observation: PyTree) -> Array:
        """float32[feature_size] of an observation, what a network reads."""
        return self.env.features(observation)


class FloatObservations(Wrapper):
    """The observation is float32[feature_size], the features of the compact one."""

    hides = frozenset({"feature_rows", "observe", "report"})  # of compact observations

    @property
    def observation_space(self) -> Box:
        """float32[feature_size] without bounds."""
        return Box(-np.inf, np.inf, (self.feature_size,))

    def started(self, observation: PyTree, state: PyTree) -> tuple[Array, PyTree]:
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
    """A state, and the return and length of its episode and of the last one that has ended."""

    env_state: PyTree
    episode_return: Array  # float32, sum of rewards so far
    episode_length: Array  # int32, actions taken so far
    returned_episode_returns: Array  # float32, 0 before the first end of an episode
    returned_episode_lengths: Array  # int32, likewise


class LogEpisodes(Wrapper):
    """Keeps return and length of the last finished episode in the state, and tells them in `info`.

    `info` holds `returned_episode` (bool, the episode has ended with this step),
    `returned_episode_returns` and `returned_episode_lengths` (of the last one that has ended).
    """

    hides = _OF_STATES

    def started(self, observation: PyTree, state: PyTree) -> tuple[PyTree, LogState]:
        """The observation, and a state with nothing in its log."""
        real, number = jnp.float32(0), jnp.int32(0)
        return observation, LogState(state, real, number, real, number)

    def within(self, state: LogState) -> PyTree:
        """The state without its log."""
        return state.env_state

    def step(self, key: Array, state: LogState, action: Array) -> Step:
        """Takes an action; see the class for what is added to `info`."""
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
    """A state, and what the last step returned."""

    env_state: PyTree  # once the episode has ended, the first one of the next
    observation: PyTree
    terminated: Array  # bool
    truncated: Array  # bool
    info: dict[str, PyTree]  # zeros before the first step


class NoAutoReset(Wrapper):
    """A game that has ended stays as it is: each further step returns the same, with reward 0.

    Its mask is then all False. HackMatrix does this by itself, and faster, when it is made with
    `auto_reset=False`; the states then show the end of the game too.
    """

    hides = _OF_STATES

    def started(self, observation: PyTree, state: PyTree) -> tuple[PyTree, OneEpisode]:
        """The observation, and the state of a game that goes on."""
        info = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), traced_spec(self.env).info)
        return observation, OneEpisode(state, observation, jnp.bool_(False), jnp.bool_(False), info)

    def within(self, state: OneEpisode) -> PyTree:
        """The state without the last step."""
        return state.env_state

    def action_mask(self, state: OneEpisode) -> Array:
        """bool[num_actions], True where the action is valid; none is at the end."""
        return super().action_mask(state) & ~(state.terminated | state.truncated)

    def step(self, key: Array, state: OneEpisode, action: Array) -> Step:
        """Takes an action, or stays at the end."""
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
    """What gymnax's environments are given at each call; here it only tells what is so."""

    max_steps_in_episode: int | None = field(metadata={"static": True})


class GymnaxSignature(Wrapper):
    """The signature of gymnax: `params` at each call, spaces as methods, `default_params`.

    Programs written for gymnax read the observation itself, so wrap `FloatObservations` of
    HackMatrix.
    """

    @property
    def name(self) -> str:
        """The environment's id."""
        return str(getattr(self.env, "id", type(self.env).__name__))

    @property
    def default_params(self) -> EnvParams:
        """The only params there are: the limit with which the environment was made."""
        return EnvParams(getattr(self.env, "max_episode_steps", None))

    def reset(self, key: Array, params: EnvParams | None = None) -> tuple[PyTree, PyTree]:
        """Starts a game: observation and state."""
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
