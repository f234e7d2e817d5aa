"""The table of environments by id, used by `hackmatrix.make` and the trainer.

Names joined by `+` are one environment that has them as tasks (`tasks.py`).

Importing this module imports no JAX.
"""

import difflib
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from hackmatrix.core.errors import UserError
from hackmatrix.core.named_code import import_callable, is_spelt_right
from hackmatrix.core.version import ENVIRONMENT_ID, TOGETHER
from hackmatrix.game.rules.training_reward import PROGRAM_WORTH, WIN_WORTH

if TYPE_CHECKING:
    from hackmatrix.environments.interface.environment import Environment

_MOST_TASKS = 64

CLASSIC_CONTROL = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")


Maker = Callable[..., "Environment"]


def _hackmatrix() -> Maker:
    from hackmatrix.environments.hackmatrix import HackMatrixEnv

    return HackMatrixEnv


def _classic_control(name: str) -> Maker:
    from hackmatrix.environments.classic import ClassicControl

    return partial(ClassicControl, name)


# By id: a function that imports and returns the environment's constructor.
MAKERS: dict[str, Callable[[], Maker]] = {
    ENVIRONMENT_ID: _hackmatrix,
    **{name: partial(_classic_control, name) for name in CLASSIC_CONTROL},
}
_NEWEST = {"HackMatrix": ENVIRONMENT_ID}  # a name without a version means the newest


def registered() -> tuple[str, ...]:
    """The ids of all environments except user-defined ones."""
    return tuple(MAKERS)


def environment_id(name: str) -> str:
    """The id, with its version, of the environment with this name.

    A user-defined environment is named `module:function`, which is also its id.

    Raises:
        UserError: no environment has this name. Whether a user-defined one can be imported is only
            checked when it is made.
    """
    if name.count(TOGETHER) >= _MOST_TASKS:
        raise UserError(f"an environment has at most {_MOST_TASKS} tasks, got {name!r:.60}")
    if TOGETHER in name:
        return TOGETHER.join(map(environment_id, name.split(TOGETHER)))
    if name in MAKERS:
        return name
    if name in _NEWEST:
        return _NEWEST[name]
    if ":" in name:
        _check_spelling(name)
        return name
    names = [*_NEWEST, *MAKERS]
    known = f"{', '.join(names)}, and module:function for one of your own"
    spellings = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), spellings, n=1)
    hint = f"did you mean {spellings[near[0]]}? There are" if near else "there are"
    raise UserError(f"no environment is called {name!r:.80}, {hint} {known}")


def own_code(name: str) -> set[str]:
    """The user-defined environments among the tasks of an environment: making them runs code."""
    return {task for task in name.split(TOGETHER) if ":" in task}


def check_code(name: str, named_by_user: str | None, what: str, flags: str = "") -> None:
    """Checks that the user names the code that a file names: a file alone never runs any.

    Args:
        name: of the environment, from a file.
        named_by_user: the environment that the user names.
        what: begins the error, such as "params.npz: plays".
        flags: those that name the environment; `--env` and its id unless given.

    Raises:
        UserError: no environment has this name, or it is code that the user does not name.
    """
    known = environment_id(name)
    if not own_code(known) <= own_code(named_by_user or ""):
        raise UserError(
            f"{what} {known:.200}, code that runs only if you say so by "
            f"{flags or f'--env {known}':.400}"
        )


def make(name: str, **options: Any) -> "Environment":
    """Makes the environment with this name and these options.

    Args:
        name: see `environment_id`.
        options: keyword arguments of its constructor, or of the user's function; with several
            tasks, of each of them.

    Raises:
        UserError: no environment has this name, its package is not installed, an option is unknown
            or out of range, or a user-defined environment fails or is no `Environment`.
    """
    env_id = environment_id(name)
    if TOGETHER in env_id:
        return _with_tasks([make(task, **options) for task in env_id.split(TOGETHER)])
    if ":" in env_id:
        return _own_environment(env_id, options)
    maker = MAKERS[env_id]()
    _check_options(f"environment {env_id}: ", maker, options)
    return maker(**options)


def make_environment(
    name: str,
    observation: str = "full",
    max_episode_steps: int | None = None,
    reward: str = "game",
    win_worth: float = WIN_WORTH,
    program_worth: float = PROGRAM_WORTH,
    engine: str = "auto",
) -> "Environment":
    """Makes the environment of a run from its settings.

    Args:
        name: see `environment_id`.
        observation: layout of the features that networks read of HackMatrix's compact observations;
            ignored by others.
        reward: reward of HackMatrix; ignored by others, as are the next two.
        win_worth: points of score that a win alone is worth to the reward "score".
        program_worth: what an owned program is worth to the reward "programs".
        engine: engine that plays HackMatrix; ignored by others.
        max_episode_steps: number of actions after which an episode is truncated; None for the
            environment's default limit.

    Raises:
        UserError: see `make`.
    """
    env_id = environment_id(name)
    if TOGETHER in env_id:
        return _with_tasks(
            [
                make_environment(
                    task, observation, max_episode_steps, reward, win_worth, program_worth, engine
                )
                for task in env_id.split(TOGETHER)
            ]
        )
    options: dict[str, Any] = {}
    if max_episode_steps is not None:
        options["max_episode_steps"] = max_episode_steps
    if env_id == ENVIRONMENT_ID:
        options["layout"] = observation
        options["reward"] = reward
        options["win_worth"] = win_worth
        options["program_worth"] = program_worth
        options["engine"] = engine
    return make(name, **options)


def _with_tasks(envs: "list[Environment]") -> "Environment":
    from hackmatrix.environments.tasks import MultiTask

    return MultiTask(envs)


def _check_spelling(name: str) -> None:
    if is_spelt_right(name):
        return
    module, _, function = name.partition(":")  # a path is the likely mistake
    guess = re.sub(r"[/\\]", ".", module.removeprefix("./").removesuffix(".py")) + ":" + function
    if is_spelt_right(guess):
        raise UserError(f"no environment is called {name!r:.80}, did you mean {guess:.80}?")
    raise UserError(
        f"no environment is called {name!r:.80}; one of your own is module:function, such as "
        "my_game:make"
    )


def _own_environment(name: str, options: dict[str, Any]) -> "Environment":
    from hackmatrix.environments.check import check_environment
    from hackmatrix.environments.interface.environment import optional_members
    from hackmatrix.environments.user_code import convert_errors

    with convert_errors(f"environment {name}"):
        function = import_callable(name)
        _check_options("", function, options)
        env: Environment = function(**options)
        check_environment(env)
        limit = options.get("max_episode_steps")
        kept = optional_members(env).max_episode_steps
        if limit is not None and kept not in (limit, None):
            raise UserError(
                f"is made with max_episode_steps={limit}, and its member of that name is {kept!r}"
            )
    return env


def _check_options(prefix: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        inspect.signature(function).bind(**options)
    except TypeError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in options.items()) or "no arguments"
        raise UserError(f"{prefix}is called with {given}: {error}") from None
