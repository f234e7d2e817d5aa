"""HackMatrix: the game in Python and in JAX, and agents that learn it.

Importing this package imports no JAX; `make` does.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any, Literal, overload

from hackmatrix.core.version import ENVIRONMENT_ID, __version__

if TYPE_CHECKING:
    from hackmatrix.environments.hackmatrix import HackMatrixEnv
    from hackmatrix.environments.interface.environment import Environment

if (
    "gymnasium" in sys.modules
):  # else `import hackmatrix.integrations.gymnasium` does it, when Gymnasium is wanted
    importlib.import_module("hackmatrix.integrations.gymnasium")

__all__ = ["ENVIRONMENT_ID", "__version__", "draw", "make", "registered"]


@overload
def make(id: Literal["HackMatrix-v1"] = ..., /, **options: Any) -> "HackMatrixEnv": ...
@overload
def make(id: str, /, **options: Any) -> "Environment": ...
def make(id: str = ENVIRONMENT_ID, /, **options: Any) -> "Environment":
    """Makes the environment with this id.

    Args:
        id: one of `registered()`, or `module:function` for one of your own.
        options: keyword arguments of the environment; for HackMatrix `observation` ("full",
            "classic" or "tactical"), `reward` ("game" or "progress"), `max_episode_steps` and
            `auto_reset`.

    Raises:
        ValueError: no environment has this id, it does not accept an option or its value, or one of
            your own lacks a member of `hackmatrix.environments.interface.environment.Environment`.
    """
    from hackmatrix.environments import registry

    return registry.make(id, **options)


def registered() -> tuple[str, ...]:
    """The ids of the built-in environments."""
    from hackmatrix.environments import registry

    return registry.registered()


def draw(state: Any, *, reveal: bool = False) -> str:
    """A picture of a game as SVG text: what the player sees.

    Args:
        state: an `EnvState` of one game, a `hackmatrix.game.engine.Game` or its state.
        reveal: also show what is hidden from the player.

    Raises:
        TypeError: it is not a state.
        ValueError: it is a batch of games.
    """
    from hackmatrix.game.drawing import draw

    return draw(state, reveal=reveal)
