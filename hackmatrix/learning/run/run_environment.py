"""The environment of a run: the one that its settings name, and the one that it trains on."""

from hackmatrix.environments.curriculum.env import with_curriculum
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.environments.registry import make_environment
from hackmatrix.learning.settings.config import TrainConfig


def environment_of(config: TrainConfig) -> Environment:
    """The environment that the settings name, which is also the one of evaluations."""
    return make_environment(
        config.environment, config.observation, config.max_episode_steps, config.reward
    )


def trained_environment(env: Environment, config: TrainConfig) -> Environment:
    """The environment to train on; evaluations always play the real game."""
    if config.curriculum is None:
        return env
    return with_curriculum(env, config.curriculum, config.curriculum_start_level)
