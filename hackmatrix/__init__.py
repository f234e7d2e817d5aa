"""HackMatrix: the game in Python and in JAX, and agents that learn it.

Importing this package imports no JAX; `make` does.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from hackmatrix.core.imports import import_after
from hackmatrix.core.version import ENVIRONMENT_ID, __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from hackmatrix.agents.networks.policy import Policy
    from hackmatrix.environments.hackmatrix import HackMatrixEnv
    from hackmatrix.environments.interface.environment import Environment
    from hackmatrix.game.engine import Game
    from hackmatrix.learning.run.loop import RunOutcome
    from hackmatrix.research.evaluation.report import Report
    from hackmatrix.research.exchange.run_record import FrameLibrary, RunRecord

import_after("gymnasium", "hackmatrix.integrations.gymnasium")

__all__ = [
    "ENVIRONMENT_ID",
    "Game",
    "__version__",
    "draw",
    "evaluate",
    "load_agent",
    "make",
    "read_run",
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
    from hackmatrix.core.imports import need
    from hackmatrix.core.jax_defaults import jax_defaults
    from hackmatrix.environments import registry

    need("jax")
    known = registry.environment_id(id)  # before JAX is imported
    with jax_defaults():
        return registry.make(known, **options)


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


def load_agent(agent: "str | Path" = "shipped", *, architecture: str | None = None) -> "Policy":
    """A trained agent, which is also a function of the form that `evaluate` plays with.

    `agent(agent.params, observation, mask, key)` is its action in a game of
    `hackmatrix.make(observation=agent.observation)`; `agent.make()` gives the environment and the
    network as they were trained.

    Args:
        agent: a file of params, a run's folder, or an agent of this package: "shipped", "score".
        architecture: its network, if it is your own (`module:function`); a file alone runs no code.

    Raises:
        UserError: it is missing or damaged, or doesn't say of which network it is.
    """
    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.agents.roster.names import params_of
    from hackmatrix.core import named_code

    if architecture is not None:
        named_code.allow(architecture)
    return load_policy(params_of(str(agent)))


def evaluate(
    agent: "str | Path | Policy | Callable[..., Any]" = "shipped",
    *,
    params: Any = None,
    observation: str = "compact",
    env: str = "HackMatrix",
    architecture: str | None = None,
    episodes: int = 1_000,
    seed: int = 0,
    max_steps: int = 2_000,
    greedy: bool = False,
    search: int | None = None,
) -> "Report":
    """Plays games of an agent, as `hackmatrix evaluate` does.

    A function is an agent too. One of two arguments, `policy(observation, mask)`, gets NumPy arrays
    of K games that are under way, [K, ...] and bool[K, 28], and returns their actions, int[K]; it
    needs no JAX. One of four, `policy(params, observation, mask, key)`, is traced by JAX for a
    single game, with mask bool[28] and a random key, and returns an action, int[]. An invalid
    action ends a game of HackMatrix, which is then lost.

    Args:
        agent: "shipped", the agent of this package, a file of params, the folder of a run with one
            agent, "random", "exit" or "scripted"; NAME@N searches, see `search`. Or what
            `load_agent` returned, or a function.
        params: a tree of arrays, for functions of four arguments.
        observation: what functions are shown: "compact", "classic", "full", "tactical" or
            "planes", as in `make`.
        env: the environment that "random" and functions of four arguments play, or that of params
            if it is code of your own.
        architecture: the network of params, if it is your own (`module:function`).
        episodes: number of games.
        seed: the seed of the games, none of which is ever trained on.
        max_steps: actions after which a game is cut off.
        greedy: whether the network takes its most probable action instead of sampling one.
        search: simulations of a search before each action of a network; none without.

    Returns:
        The results with their 95 % intervals: `report.wins`, `report.stages` and `report.score`
        have a mean, low and high; `report.table()` is what the command prints, and `report.games`
        has a row for each game.

    Raises:
        UserError: there is no such agent or environment, they do not fit, or what a function
            returns is no action.
    """
    from hackmatrix.agents.roster.names import check_environment, resolve
    from hackmatrix.core import named_code
    from hackmatrix.core.errors import UserError
    from hackmatrix.research.evaluation.agents import SLOWER, agent_player, plays_on_numpy
    from hackmatrix.research.evaluation.limits import Limits

    if episodes < 1 or max_steps < 1 or not 0 <= seed < 2**31:
        raise UserError("episodes and max_steps must be at least 1, seed 0 to 2147483647")
    limits = Limits(episodes, seed, max_steps)
    if architecture is not None:
        named_code.allow(architecture)
    if not isinstance(agent, str | Path):
        from hackmatrix.research.evaluation.policies import function_report

        return function_report(
            agent, params, observation, env, limits, greedy=greedy, search=search
        )
    if params is not None:
        raise UserError(f"{agent}: params go with a function of four arguments")
    check_environment([str(agent)], env)
    name = resolve(str(agent), search)
    if plays_on_numpy(name, env):
        print(f"{name}: {SLOWER}", file=sys.stderr)
    return agent_player(name, env, limits, greedy=greedy)(())


def read_run(path: "str | Path", *, frame: "FrameLibrary | None" = None) -> "RunRecord":
    """A run's metrics, evaluations and settings, for analysis; needs no JAX.

    Args:
        path: the run's folder.
        frame: "pandas", "polars" or "numpy", whose frames are made; unless given the first of them
            that is installed.

    Returns:
        `metrics` and `evaluations` are frames with a row for each agent at each time (of NumPy:
        arrays by name), `settings` is a dictionary, and `plot("train/entropy", ...)` gives a
        picture that a notebook shows.

    Raises:
        UserError: it is no run, has no metrics yet, or the library is not installed.
    """
    from hackmatrix.research.exchange.run_record import run_record

    return run_record(Path(path), frame)


def train(
    env: str | None = None,
    /,
    *,
    config: "str | Path | None" = None,
    run_name: str | None = None,
    output_dir: "str | Path | None" = None,
    **settings: Any,
) -> "RunOutcome":
    """Trains an agent, as `hackmatrix train` does, from the beginning.

    `load_agent(outcome.run)` is the agent then, and `evaluate(outcome.run)` measures it; both want
    `architecture` again if the network is your own. In the main thread Ctrl+C and SIGTERM end the
    run with a checkpoint; in another one it goes on to its end.

    Args:
        env: the environment, "HackMatrix" unless given, or `module:function` for one of your own.
        config: a name of `hackmatrix train --list-configs`, such as "quick", or a YAML file of
            settings; those given here win.
        run_name: name of the run, whose folder is in `checkpoint_dir`; a date and a number unless
            given.
        output_dir: the run's folder, instead of a name.
        settings: those of `hackmatrix.learning.settings.config.TrainConfig`, such as
            `total_timesteps`, `num_envs`, `hidden_dim`, `seed` and `checkpoint_dir`. Without
            `config` the others are those of "best" for HackMatrix, else the defaults.

    Returns:
        How the run ended, and where its folder, checkpoint and params are.

    Raises:
        UserError: a setting is not valid or doesn't fit the device, or the file can't be read;
            nothing was changed.
        TypeError: there is no such setting.
    """
    from hackmatrix.core.imports import need

    need("jax", "flax")
    from hackmatrix.core import named_code
    from hackmatrix.core.jax_defaults import jax_defaults
    from hackmatrix.environments.registry import check_code
    from hackmatrix.learning.run.loop import train
    from hackmatrix.learning.settings.config import TrainOptions
    from hackmatrix.learning.settings.config_file import default_settings, read_config
    from hackmatrix.learning.settings.resolve import resolve
    from hackmatrix.research.evaluation.jax_agents import make_evaluate

    folder = None if output_dir is None else Path(output_dir)
    options = TrainOptions(run_name=run_name, output_dir=folder)
    if "checkpoint_dir" in settings:
        settings["checkpoint_dir"] = Path(settings["checkpoint_dir"])
    given = settings if env is None else {"env": env, **settings}
    in_file = default_settings(given) if config is None else read_config(Path(config))
    for name in settings.keys() & {"architecture", "algorithm"}:
        named_code.allow(settings[name])
    resolved, _ = resolve(given, in_file)
    resolved.network.check_code(f"{config}: its network is")
    if config is not None:
        named = resolved.environment.name
        check_code(named, env, f"{config}: trains on", f"train({named!r}, ...)")
    with jax_defaults():
        return train(resolved, options, make_evaluate=make_evaluate)
