"""HackMatrix: the game in Python and in JAX, and agents that learn it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hackmatrix.jaxgame.env import HackMatrixEnv

__version__ = "0.1.0"

ENVIRONMENT_ID = "HackMatrix-v1"


def make(name: str = ENVIRONMENT_ID, **options: Any) -> "HackMatrixEnv":
    """The JAX environment with this id; the number is that of the rules and the observation.

    Args:
        name: "HackMatrix-v1".
        options: of `HackMatrixEnv`: `observation`, `max_episode_steps`, `auto_reset`.

    Raises:
        ValueError: no environment has this id, or an option is out of range.
    """
    if name != ENVIRONMENT_ID:
        raise ValueError(f"no environment is called {name!r}; there is {ENVIRONMENT_ID!r}")
    from hackmatrix.jaxgame.env import HackMatrixEnv  # JAX is imported only for those who train

    return HackMatrixEnv(**options)
