"""HackMatrix: the game in Python and in JAX, and agents that learn it.

Importing this package imports no JAX; `make` does.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any, Literal, overload

from hackmatrix.core.version import ENVIRONMENT_ID, __version__

if TYPE_CHECKING:
    from pathlib import Path

    from hackmatrix.agents.networks.policy import Policy
    from hackmatrix.environments.hackmatrix import HackMatrixEnv
    from hackmatrix.environments.interface.environment import Environment
    from hackmatrix.game.engine import Game
    from hackmatrix.learning.run.loop import Outcome
    from hackmatrix.research.evaluation.report import Report

if "gymnasium" in sys.modules:  # else `import hackmatrix.integrations.gymnasium` does it
    importlib.import_module("hackmatrix.integrations.gymnasium")

__all__ = [
    "ENVIRONMENT_ID",
    "Game",
    "__version__",
    "draw",
    "evaluate",
    "load_agent",
    "make",
    "registered",
    "train",
]


def __getattr__(name: str) -> Any:
    if name != "Game":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hackmatrix.game.engine import Game

    return Game


@overload
def make(id: Literal["HackMatrix-v1"] = ..., /, **options: Any) -> "HackMatrixEnv": ...
@overload
def make(id: str, /, **options: Any) -> "Environment": ...
def make(id: str = ENVIRONMENT_ID, /, **options: Any) -> "Environment":
    """Makes the environment with this id.

    Args:
        id: one of `registered()`, or `module:function` for one of your own.
        options: keyword arguments of the environment; for HackMatrix `observation`, what `reset`
            and `step` return ("compact", uint8[244]; "classic", float32[1545]; "full",
            float32[1946]; "tactical", float32[432]; "planes", float32[6, 6, 127]), `layout` (of
            the features that `env.features` makes of compact observations), `reward` ("game" or
            "progress"), `max_episode_steps`, `auto_reset` and `engine`.

    Raises:
        ValueError: no environment has this id, it does not accept an option or its value, or one of
            your own lacks a member of `hackmatrix.environments.interface.environment.Environment`;
            or JAX is not installed.
    """
    from hackmatrix.core.extras import need
    from hackmatrix.environments import registry

    need("jax")
    return registry.make(id, **options)


def registered() -> tuple[str, ...]:
    """The ids of the built-in environments."""
    from hackmatrix.environments import registry

    return registry.registered()


def draw(state: Any, *, reveal: bool = False) -> str:
    """A picture of a game as SVG text: what the player sees.

    Args:
        state: an `EnvState` of one game, a `hackmatrix.Game` or its state.
        reveal: also show what is hidden from the player.

    Raises:
        TypeError: it is not a state.
        ValueError: it is a batch of games.
    """
    from hackmatrix.game.drawing import draw

    return draw(state, reveal=reveal)


def load_agent(agent: "str | Path" = "shipped") -> "Policy":
    """A trained agent: params of a network, and what they were trained on.

    `load_agent(agent).make()` gives its environment and its network.

    Args:
        agent: a file of params, a run's folder, or "shipped", the agent of this package.

    Raises:
        UserError: it is missing or damaged, or doesn't say of which network it is.
    """
    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.agents.roster.names import params_of

    return load_policy(params_of(str(agent)))


def evaluate(
    agent: "str | Path" = "shipped",
    *,
    env: str = "HackMatrix",
    episodes: int = 1_000,
    seed: int = 0,
    max_steps: int = 2_000,
    greedy: bool = False,
    search: int | None = None,
) -> "Report":
    """Plays games of an agent, as `hackmatrix evaluate` does.

    Args:
        agent: "shipped", the agent of this package, a file of params, the folder of a run with one
            agent, "random", "exit" or "scripted"; NAME@N searches, see `search`.
        env: the environment that "random" plays, or that of params if it is code of your own.
        episodes: number of games.
        seed: the seed of the games, none of which is ever trained on.
        max_steps: actions after which a game is cut off.
        greedy: whether the network takes its most probable action instead of sampling one.
        search: simulations of a tree search before each action of a network; none without.

    Returns:
        The means with their 95 % intervals: `report.means()`, `report.table()`.

    Raises:
        UserError: there is no such agent or environment, or they do not fit.
    """
    from hackmatrix.agents.roster.names import check_environment, resolve
    from hackmatrix.research.evaluation.agents import agent_player
    from hackmatrix.research.evaluation.limits import Limits

    limits = Limits(episodes, seed, max_steps)
    check_environment([str(agent)], env)
    return agent_player(resolve(str(agent), search), env, limits, greedy=greedy)(())


def train(env: str = "HackMatrix", /, **settings: Any) -> "Outcome":
    """Trains an agent, as `hackmatrix train` does, from the beginning.

    Args:
        env: the environment, or `module:function` for one of your own.
        settings: those of `hackmatrix.learning.settings.config.TrainConfig`, such as
            `total_timesteps`, `num_envs`, `hidden_dim`, `seed` and `checkpoint_dir`.

    Returns:
        How the run ended, and where its folder, checkpoint and params are.

    Raises:
        UserError: a setting is not valid or doesn't fit the device; nothing was changed.
        TypeError: there is no such setting.
    """
    from hackmatrix.core.extras import need

    need("jax", "flax")
    from hackmatrix.learning.run.loop import train
    from hackmatrix.learning.settings.resolve import resolve
    from hackmatrix.research.evaluation.selection import make_evaluate

    config, _ = resolve({"env": env, **settings})
    return train(config, make_evaluate=make_evaluate)
