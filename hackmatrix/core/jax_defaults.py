"""JAX's settings under which the package computes: the defaults, whatever the user's program set.

With 64 bits, strict promotion or a transfer guard its programs would be other ones, or none; within
`jax_defaults` they are the same, to the last bit. Importing this module imports no JAX.
"""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_VARIABLES = (
    "JAX_DISABLE_JIT",
    "JAX_ENABLE_X64",
    "JAX_NUMPY_DTYPE_PROMOTION",
    "JAX_NUMPY_RANK_PROMOTION",
    "JAX_TRANSFER_GUARD",
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def drop_from_environment() -> None:
    """Makes the defaults those of this process, before it imports JAX, and of those it starts."""
    for name in _VARIABLES:
        os.environ.pop(name, None)


@contextlib.contextmanager
def jax_defaults() -> Iterator[None]:
    """A context with the defaults, in this thread; others of the same process keep theirs."""
    import jax

    with (
        jax.disable_jit(False),
        jax.enable_x64(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.transfer_guard("allow"),
    ):
        yield


def with_jax_defaults(decorated: Decorated) -> Decorated:
    """A function that runs with the defaults; of a class all that others call."""
    if not inspect.isclass(decorated):
        return _within(decorated)
    for name, member in vars(decorated).copy().items():
        is_public = name in ("__init__", "__call__") or not name.startswith("_")
        if is_public and inspect.isfunction(member):
            setattr(decorated, name, _within(member))
    return decorated


def _within(function: Any) -> Any:
    @functools.wraps(function)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        with jax_defaults():
            return function(*args, **kwargs)

    return with_defaults
