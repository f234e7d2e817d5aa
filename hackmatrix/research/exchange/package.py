"""The optional packages of the extra `exchange`."""

import importlib.util

from hackmatrix.core.errors import UserError


def needed(package: str) -> None:
    """Raises `UserError` if a package of the extra is not installed."""
    if importlib.util.find_spec(package) is None:
        raise UserError(f"needs {package}: pip install 'hackmatrix[exchange]'")
