"""Environments by name."""

import difflib

import hackmatrix
from hackmatrix import ENVIRONMENT_ID
from hackmatrix.agents import classic
from hackmatrix.agents.environment import Environment
from hackmatrix.errors import UserError
from hackmatrix.training.config import TrainConfig

_IDS = {"HackMatrix": ENVIRONMENT_ID} | {name: name for name in (ENVIRONMENT_ID, *classic.NAMES)}


def environment_id(config: TrainConfig) -> str:
    """The id, with its version, of the environment that a configuration names.

    Raises:
        UserError: there is none of this name.
    """
    if config.env in _IDS:
        return _IDS[config.env]
    spellings = {name.lower(): name for name in _IDS}
    near = difflib.get_close_matches(config.env.lower(), spellings, n=1)
    hint = f"did you mean {spellings[near[0]]}?" if near else f"there are {', '.join(_IDS)}"
    raise UserError(f"no environment is called {config.env!r}, {hint}")


def make_environment(config: TrainConfig) -> Environment:
    """The environment that a configuration names.

    Raises:
        UserError: there is none of this name, or its package is not installed.
    """
    name = environment_id(config)
    if name in classic.NAMES:
        return classic.ClassicControl(name, config.max_episode_steps)
    return hackmatrix.make(
        observation=config.observation, max_episode_steps=config.max_episode_steps
    )
