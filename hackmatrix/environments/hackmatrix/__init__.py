"""HackMatrix as an environment: reset and step, metrics, columns of evaluations.

Importing this package imports no JAX, which the tables in it do not need.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
    from hackmatrix.environments.hackmatrix.env_state import EnvState

__all__ = ["EnvState", "HackMatrixEnv"]

_MODULES = {"EnvState": "env_state", "HackMatrixEnv": "env"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
