"""Converts exceptions in a user's code to one-line errors that name the place."""

import contextlib
import sys
import traceback
from collections.abc import Iterator

import jax

from hackmatrix.core.errors import UserError
from hackmatrix.core.named_code import relative_to_cwd

# Packages that user code calls: their frames do not show where the mistake is.
_LIBRARIES = {"flax", "hackmatrix", "jax", "jaxlib", "numpy"} | sys.stdlib_module_names
_NEEDS_A_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_HINT = "; JAX computes all games at once: jnp.where instead of `if`, jnp instead of NumPy"


@contextlib.contextmanager
def convert_errors(prefix: str) -> Iterator[None]:
    """Converts every exception inside the context to a one-line `UserError` with this prefix.

    `UserError`s keep their message; for other exceptions the message has file and line in the
    user's code, the type, and the first line of the original message.
    """
    try:
        yield
    except UserError as error:
        raise UserError(f"{prefix}: {error}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"{prefix}: {_line_of(error)}{_what(error)}") from error


def _line_of(error: BaseException) -> str:
    """`file:line: ` of the innermost frame in the user's code, or an empty string."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{relative_to_cwd(error.filename)}:{error.lineno}: "
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        package = frame.f_globals.get("__name__", "").split(".")[0]
        if package not in _LIBRARIES and not file.startswith("<"):
            return f"{relative_to_cwd(file)}:{line}: "
    return ""


def _what(error: BaseException) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    what = ": ".join([type(error).__name__, *message.splitlines()[:1]])
    if isinstance(error, _NEEDS_A_VALUE):
        what = what.rstrip(".") + _HINT
    return what
