"""Environments by name."""

import difflib

import hackmatrix
from hackmatrix import ENVIRONMENT_ID
from hackmatrix.agents import classic
from hackmatrix.agents.environment import Environment
from hackmatrix.errors import UserError

_IDS = {"HackMatrix": ENVIRONMENT_ID} | {name: name for name in (ENVIRONMENT_ID, *classic.NAMES)}


def environment_id(name: str) -> str:
    """The id, with its version, of the environment that is called so.

    Raises:
        UserError: there is none of this name.
    """
    if name in _IDS:
        return _IDS[name]
    spellings = {known.lower(): known for known in _IDS}
    near = difflib.get_close_matches(name.lower(), spellings, n=1)
    hint = f"did you mean {spellings[near[0]]}?" if near else f"there are {', '.join(_IDS)}"
    raise UserError(f"no environment is called {name!r}, {hint}")


def make_environment(
    name: str, observation: str = "full", max_episode_steps: int | None = None
) -> Environment:
    """The environment that is called so.

    Args:
        name: see `environment_id`.
        observation: layout of HackMatrix's features, "classic" or "full".
        max_episode_steps: actions after which an episode is truncated; None: its usual limit.

    Raises:
        UserError: there is none of this name, or its package is not installed.
    """
    known = environment_id(name)
    if known in classic.NAMES:
        return classic.ClassicControl(known, max_episode_steps)
    return hackmatrix.make(observation=observation, max_episode_steps=max_episode_steps)
