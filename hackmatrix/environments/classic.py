"""Classic control through gymnax, with the face of `Environment`."""

import jax
import jax.numpy as jnp

from hackmatrix.errors import UserError
from hackmatrix.interface.environment import PyTree, Step

Array = jax.Array

NAMES = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")


class ClassicControl:
    """One game of classic control: the dynamics, rewards and limits are those of Gymnasium.

    Observation: float32[feature_size], 4 for CartPole, 6 for Acrobot, 2 for MountainCar; the
    features are the same. Every action is always valid.
    """

    def __init__(self, name: str, max_episode_steps: int | None = None) -> None:
        """Makes the environment.

        Args:
            name: one of `NAMES`.
            max_episode_steps: actions after which an episode is truncated; by default 500, for
                MountainCar 200.

        Raises:
            UserError: gymnax is not installed.
        """
        try:
            import gymnax
        except ModuleNotFoundError:
            raise UserError(
                f'{name} comes with the extra "classic": pip install "hackmatrix[classic]"'
            ) from None
        self._env, params = gymnax.make(name)
        self.max_episode_steps: int = max_episode_steps or params.max_steps_in_episode
        self._params = params.replace(max_steps_in_episode=self.max_episode_steps)
        self.num_actions: int = self._env.num_actions
        (self.feature_size,) = self._env.observation_space(params).shape

    def reset(self, key: Array) -> tuple[Array, PyTree]:
        """Starts a game: observation and state."""
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
        """bool[num_actions], all true."""
        return jnp.ones(self.num_actions, bool)

    def features(self, observation: Array) -> Array:
        """float32[feature_size]: the observation."""
        return observation.astype(jnp.float32)
