"""Code that users name as `module:function`; it runs only if a flag or an argument names it.

Files of others name code too. So whoever reads such a name from a file only checks it here, and
what the command line names is allowed where that is parsed. Imports no JAX.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError

_allowed: set[str] = set()


def is_spelt_right(name: str) -> bool:
    """Whether a name has the form `module:function`."""
    module, _, function = name.partition(":")
    parts = [*module.split("."), *function.split(".")]
    return all(part.isidentifier() for part in parts) and not module.endswith(".py")


class NamesOrCode(Collection[str]):
    """The names of a table, and all that have the form `module:function`: choices of an option."""

    def __init__(self, table: Collection[str], form: str) -> None:
        self._table = table
        self._form = form  # shown as the last choice

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._table or is_spelt_right(name))

    def __iter__(self) -> Iterator[str]:
        return iter([*self._table, self._form])

    def __len__(self) -> int:
        return len(self._table) + 1


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
