"""The packages of the extra `sb3`, which may be missing."""

import contextlib
from collections.abc import Iterator

from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import install_command


@contextlib.contextmanager
def packages() -> Iterator[None]:
    """Turns a missing package into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise UserError(
            f"{package} is not installed: {install_command('sb3')} brings it "
            "(before it, `pip install torch==2.13.0` where there is only a CPU)"
        ) from error
