"""Values of a parameter that are shared out among the quick and the thorough suite."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_quickly(values: Iterable[Any], quick: int = 1) -> list[Any]:
    """The first values as they are, for the quick suite, and the others for the thorough one."""
    return [
        value if number < quick else pytest.param(value, marks=pytest.mark.thorough)
        for number, value in enumerate(values)
    ]
