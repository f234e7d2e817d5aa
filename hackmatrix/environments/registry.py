"""Environments by name."""

import difflib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import hackmatrix
from hackmatrix import ENVIRONMENT_ID
from hackmatrix.environments import classic
from hackmatrix.errors import UserError
from hackmatrix.interface.environment import Environment

_IDS = {"HackMatrix": ENVIRONMENT_ID} | {name: name for name in (ENVIRONMENT_ID, *classic.NAMES)}


def environment_id(name: str) -> str:
    """The id, with its version, of the environment that is called so.

    A user's own is called `module:function`, which is its id too.

    Raises:
        UserError: there is none of this name. Whether a user's own is there shows when it is made.
    """
    if name in _IDS:
        return _IDS[name]
    if ":" in name:
        _check_spelling(name)
        return name
    spellings = {known.lower(): known for known in _IDS}
    near = difflib.get_close_matches(name.lower(), spellings, n=1)
    hint = f"did you mean {spellings[near[0]]}?" if near else f"there are {', '.join(_IDS)}"
    raise UserError(f"no environment is called {name!r}, {hint}")


def make_environment(
    name: str, observation: str = "full", max_episode_steps: int | None = None
) -> Environment:
    """The environment that is called so.

    Args:
        name: see `environment_id`. The function of a user's own is called without arguments, or
            with `max_episode_steps=` where that is given; what it returns is checked.
        observation: layout of HackMatrix's features, "classic" or "full".
        max_episode_steps: actions after which an episode is truncated; None: its usual limit.

    Raises:
        UserError: there is none of this name, its package is not installed, or a user's own fails
            or has not the face of `Environment`.
    """
    known = environment_id(name)
    if ":" in known:
        return _own_environment(known, max_episode_steps)
    if known in classic.NAMES:
        return classic.ClassicControl(known, max_episode_steps)
    return hackmatrix.make(observation=observation, max_episode_steps=max_episode_steps)


def _check_spelling(name: str) -> None:
    if _is_spelt_right(name):
        return
    module, _, function = name.partition(":")  # a path is the likely mistake
    guess = re.sub(r"[/\\]", ".", module.removeprefix("./").removesuffix(".py")) + ":" + function
    if _is_spelt_right(guess):
        raise UserError(f"no environment is called {name!r}, did you mean {guess}?")
    raise UserError(
        f"no environment is called {name!r}; one of your own is module:function, such as "
        "my_game:make"
    )


def _is_spelt_right(name: str) -> bool:
    module, _, function = name.partition(":")
    parts = [*module.split("."), *function.split(".")]
    return all(part.isidentifier() for part in parts) and not module.endswith(".py")


def _own_environment(name: str, max_episode_steps: int | None) -> Environment:
    from hackmatrix.environments.check import check_environment
    from hackmatrix.environments.user_code import told_as

    limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
    with told_as(f"environment {name}"):
        function = _imported(name)
        _check_arguments(function, limit)
        env: Environment = function(**limit)
        check_environment(env)
        kept = getattr(env, "max_episode_steps", max_episode_steps)
        if limit and kept != max_episode_steps:
            raise UserError(
                f"is made with max_episode_steps={max_episode_steps}, and its member of that name "
                f"is {kept!r}"
            )
    return env


def _imported(name: str) -> Any:
    """What `module:function` names."""
    from hackmatrix.environments.user_code import shown

    module, _, function = name.partition(":")
    if not {"", os.getcwd()} & set(sys.path):  # it is there for `python -m`, not for scripts
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and imports what is not
        raise UserError(
            f"there is no module {error.name} in the current folder or among installed packages"
        ) from None
    holder = shown(getattr(found, "__file__", None) or module)
    for part in function.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise UserError(f"{holder} has no {part}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise UserError(f"{function} is not a function")
    return found


def _check_arguments(function: Callable[..., Any], arguments: dict[str, int]) -> None:
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        given = ", ".join(f"{name}={value}" for name, value in arguments.items()) or "no arguments"
        raise UserError(f"is called with {given}: {error}") from None
