"""Classic control environments from gymnax, as `Environment`s."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.imports import need
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.interface.environment import Environment, PyTree, Step
from hackmatrix.environments.interface.spaces import Box, Discrete, StepSpec, trace_spec
from hackmatrix.environments.wrappers import NoAutoReset, OneEpisode

# --- Made-up games of an environment whose observation says all that the future depends on --------


Array = jax.Array
State = tuple[OneEpisode, Array]  # of the environment, and the key of its next step


@with_jax_defaults
class SeenGames:
    """Games as one observation shows them, with their own dice; see `Imagination`."""

    def __init__(self, env: Environment, state_of: Callable[[PyTree], PyTree]) -> None:
        """Makes up games of `env`; `state_of` makes a running game's state of its observation."""
        self._env = NoAutoReset(env)
        self._state_of = state_of

    def begin(self, num_games: int) -> PyTree:
        """Nothing needs to be remembered."""
        del num_games
        return ()

    def after(self, memory: PyTree, observations: PyTree) -> PyTree:
        """Nothing needs to be remembered."""
        del observations
        return memory

    def imagine(
        self, memory: PyTree, observations: PyTree, which: Array, seeds: Array, worlds: Array
    ) -> State:
        """States of L games that look alike, each with its own key."""
        del memory

        def game(observation: PyTree, word: Array, world: Array) -> State:
            _, state = self._env.wrap_reset(observation, self._state_of(observation))
            return state, jax.random.fold_in(jax.random.key(word), world)

        seen = jax.tree.map(lambda x: x[which], observations)
        games: State = jax.vmap(game)(seen, seeds[which], worlds)
        return games

    def step(self, states: State, actions: Array) -> tuple[PyTree, State, Array, Array]:
        """Takes actions int32[L]."""
        games, keys = states
        now, later = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        stepped = jax.vmap(self._env.step)(now, games, actions)
        observations, games, rewards, terminated, *_ = stepped
        return observations, (games, later), rewards, terminated

    def valid(self, states: State) -> Array:
        """bool[L, A], the valid actions."""
        masks: Array = jax.vmap(self._env.action_mask)(states[0])
        return masks


# --- Classic control environments from gymnax, as `Environment`s ----------------------------------


# Mean returns that count as solved, as Gymnasium registers them.
_REWARD_THRESHOLDS = {"CartPole-v1": 475.0, "MountainCar-v0": -110.0, "Acrobot-v1": -100.0}

# Fields of a state of gymnax by an observation.
_STATE_OF: dict[str, Callable[[Array], dict[str, Array]]] = {
    "CartPole-v1": lambda x: {"x": x[0], "x_dot": x[1], "theta": x[2], "theta_dot": x[3]},
    "MountainCar-v0": lambda x: {"position": x[0], "velocity": x[1]},
    "Acrobot-v1": lambda x: {
        "joint_angle1": jnp.arctan2(x[1], x[0]),
        "joint_angle2": jnp.arctan2(x[3], x[2]),
        "velocity_1": x[4],
        "velocity_2": x[5],
    },
}


@with_jax_defaults
class ClassicControl:
    """A classic control environment, with the dynamics, rewards and limits of Gymnasium.

    Observation: float32[feature_size], 4 for CartPole, 6 for Acrobot, 2 for MountainCar; the
    features are the same. Every action is always valid.
    """

    def __init__(self, name: str, max_episode_steps: int | None = None) -> None:
        """Creates the environment.

        Args:
            name: "CartPole-v1", "Acrobot-v1" or "MountainCar-v0".
            max_episode_steps: number of actions after which an episode is truncated; by default
                500, for MountainCar 200.

        Raises:
            UserError: gymnax is not installed.
        """
        need("gymnax")
        import gymnax

        self.id = name
        self._env, params = gymnax.make(name)
        self.max_episode_steps: int = max_episode_steps or params.max_steps_in_episode
        solved = _REWARD_THRESHOLDS[name]
        # A reward of 1 for each step: as close to a limit of the user's own.
        share = self.max_episode_steps / params.max_steps_in_episode if solved > 0 else 1
        self.reward_threshold = solved * min(1, share)
        self._params = params.replace(max_steps_in_episode=self.max_episode_steps)
        self.num_actions: int = self._env.num_actions
        self.action_space = Discrete(self.num_actions)
        box = self._env.observation_space(params)
        self.observation_space = Box(_to_bound(box.low), _to_bound(box.high), box.shape)
        (self.feature_size,) = box.shape

    def __repr__(self) -> str:
        return f"hackmatrix.make({self.id!r}, max_episode_steps={self.max_episode_steps})"

    @property
    def spec(self) -> StepSpec:
        """Shapes and dtypes of the values that `step` returns."""
        return trace_spec(self)

    def reset(self, key: Array) -> tuple[Array, PyTree]:
        """Starts a game; returns observation and state."""
        observation, state = self._env.reset(key, self._params)
        return observation, state

    def step(self, key: Array, state: PyTree, action: Array) -> Step:
        """Takes an action, int 0..num_actions-1; see `Environment`."""
        # Signed, because MountainCar computes `action - 1`.
        obs, state, reward, terminated, truncated, info = self._env.step(
            key, state, jnp.int32(action), self._params
        )
        kept = {"final_observation": info["final_observation"]}
        return obs, state, reward, terminated, truncated, kept

    def action_mask(self, state: PyTree) -> Array:
        """All actions are valid: bool[num_actions], all True."""
        return jnp.ones(self.num_actions, bool)

    def features(self, observation: Array) -> Array:
        """The observation as float32[feature_size]."""
        return observation.astype(jnp.float32)

    def imagination(self) -> SeenGames:
        """Games that go on from an observation, with all of their time still to come."""
        _, first = self._env.reset(jax.random.key(0), self._params)
        return SeenGames(
            self, lambda observation: first.replace(time=0, **_STATE_OF[self.id](observation))
        )


def _to_bound(values: Array) -> tuple[float, ...]:
    return tuple(np.asarray(values).tolist())
