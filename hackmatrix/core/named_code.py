"""Code that users name as `module:function`; it runs only if a flag or an argument names it.

Files of others name code too. So whoever reads such a name from a file only checks it here, and
what the command line names is allowed where that is parsed. Imports no JAX.
"""

import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError

_allowed: set[str] = set()


def is_spelt_right(name: str) -> bool:
    """Whether a name has the form `module:function`."""
    module, _, function = name.partition(":")
    parts = [*module.split("."), *function.split(".")]
    return all(part.isidentifier() for part in parts) and not module.endswith(".py")


def allow(name: str) -> None:
    """Lets this process run the code of this name, as its user has named it."""
    _allowed.add(name)


def check_allowed(name: str, what: str, flag: str) -> None:
    """Raises `UserError`, which begins with `what`, if the user has not named this code."""
    if name not in _allowed:
        raise UserError(f"{what} {name:.200}, code that runs only if you say so by {flag} {name}")


def import_callable(name: str) -> Any:
    """The callable that `module:function` names.

    Raises:
        UserError: there is no such module, or it has no such function.
        Exception: the module raises it.
    """
    module, _, function = name.partition(":")
    if not {"", os.getcwd()} & set(sys.path):  # `python -m` adds it, scripts do not
        sys.path.insert(0, os.getcwd())
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but one of its imports does not
        raise UserError(
            f"there is no module {error.name} in the current folder or among installed packages"
        ) from None
    holder = relative_to_cwd(getattr(target, "__file__", None) or module)
    for part in function.split("."):
        if not hasattr(target, part):
            near = difflib.get_close_matches(part, dir(target), n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise UserError(f"{holder} has no {part}{hint}")
        target = getattr(target, part)
    if not callable(target):
        raise UserError(f"{function} is not a function")
    return target


def relative_to_cwd(file: str) -> str:
    """The path as a user would type it: relative if it is in the current folder."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
