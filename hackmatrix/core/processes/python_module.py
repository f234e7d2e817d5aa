"""The command line of another process of this package."""

import sys
from pathlib import Path

_STARTER = Path(__file__).resolve().parents[3] / "hackmatrix_command.py"


def python_module(module: str, *arguments: str) -> list[str]:
    """A command like `python -m MODULE ARGUMENT...`, for a module of this package.

    It finds this package whatever `PYTHONPATH` and the current folder hold; see
    `hackmatrix_command.py`. The current folder is not on its `sys.path`.
    """
    return [sys.executable, "-P", str(_STARTER), module, *arguments]
