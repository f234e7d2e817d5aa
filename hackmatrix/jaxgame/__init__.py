"""The game in JAX: the files of `engine/` as pure functions of any number of games."""

from hackmatrix.jaxgame.env import HackMatrixEnv
from hackmatrix.jaxgame.env_state import EnvState

__all__ = ["EnvState", "HackMatrixEnv"]
