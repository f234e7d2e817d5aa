"""The branches of accelerators, taken on a CPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jax import lax

from hackmatrix.game.jaxgame.control_flow import accelerators_too


@contextmanager
def as_on_accelerators() -> Iterator[None]:
    """Programs that are traced here take the branches of accelerators."""

    def default(*arguments: Any, cpu: Callable[..., Any], default: Callable[..., Any]) -> Any:
        del cpu
        return default(*arguments)

    with pytest.MonkeyPatch.context() as patch, accelerators_too():
        patch.setattr(lax, "platform_dependent", default)
        yield
