"""Integers that a caller passes, of whatever type."""

from operator import index
from typing import SupportsIndex


def as_integer(name: str, value: SupportsIndex, largest: int) -> int:
    """The argument `name` as a Python integer, 0..`largest`.

    NumPy's integers wrap or overflow in the arithmetic that Python's survive.

    Raises:
        TypeError: it is no integer.
        ValueError: it is out of range.
    """
    try:
        integer = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if not 0 <= integer <= largest:
        raise ValueError(f"{name} must be 0..{largest}, got {value}")
    return integer
