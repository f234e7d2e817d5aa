"""Reads JSON data by tables of fields; errors name the place: `enemies[2].hp: ...`.

A reader takes a JSON value and returns the parsed value, or raises `WrongField`.
"""

import sys
from collections.abc import Callable, Mapping, Set
from typing import Any, Self, TypeVar

from hackmatrix.game.engine.fields import format_value

_T = TypeVar("_T")
Reader = Callable[[Any], _T]


class WrongField(ValueError):
    """A value that is not of the expected form."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, path)
        self.message, self.path = message, path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def inside(self, outer: str) -> Self:
        """The same error with the path extended by the object or list around it."""
        joint = "." if self.path and not self.path.startswith("[") else ""
        return type(self)(self.message, f"{outer}{joint}{self.path}")


class OutOfRange(WrongField):
    """A value of the right form that the engine cannot represent."""


def fields(
    raw: Any, readers: Mapping[str, Reader[Any]], required: Set[str], *, open: bool = False
) -> dict[str, Any]:
    """Reads a JSON object; with `open`, fields without a reader are ignored."""
    if type(raw) is not dict:
        raise WrongField(f"expected an object, got {format_value(raw)}")
    read: dict[str, Any] = {}
    for name, value in raw.items():
        reader = readers.get(name)
        if reader is not None:
            try:
                read[name] = reader(value)
            except WrongField as error:
                raise error.inside(name) from None
        elif not open:
            raise WrongField(f"unknown field {format_value(name)}")
    missing = [name for name in required if name not in read]
    if missing:
        raise WrongField("missing", min(missing))
    return read


def list_of(reader: Reader[_T], length: int | None = None) -> Reader[list[_T]]:
    """A reader for lists, of a fixed length if one is given."""

    def read(raw: Any) -> list[_T]:
        if type(raw) is not list:
            raise WrongField(f"expected a list, got {format_value(raw)}")
        if length is not None and len(raw) != length:
            raise WrongField(f"expected {length} values, got {len(raw)}")
        values = []
        for i, value in enumerate(raw):
            try:
                values.append(reader(value))
            except WrongField as error:
                raise error.inside(f"[{i}]") from None
        return values

    return read


def one_of(names: Mapping[str, _T]) -> Reader[_T]:
    """A reader that maps a name to its value."""

    def read(raw: Any) -> _T:
        if type(raw) is not str or raw not in names:
            raise WrongField(f"expected one of {', '.join(names)}, got {format_value(raw)}")
        return names[raw]

    return read


def within(low: int, high: int) -> Reader[int]:
    """A reader for integers; raises `OutOfRange` outside `low`..`high`."""

    def read(raw: Any) -> int:
        value = whole(raw)
        if not low <= value <= high:
            raise OutOfRange(f"expected {low}..{high}, got {value}")
        return value

    return read


def whole(raw: Any) -> int:
    """Reads an integer."""
    if type(raw) is not int:
        raise WrongField(f"expected a whole number, got {format_value(raw)}")
    return raw


def read_number(raw: Any) -> float:
    """Reads a number, as a float."""
    if type(raw) not in (int, float) or not abs(raw) <= sys.float_info.max:
        raise WrongField(f"expected a number, got {format_value(raw)}")
    return float(raw)


def flag(raw: Any) -> bool:
    """Reads a bool."""
    if type(raw) is not bool:
        raise WrongField(f"expected true or false, got {format_value(raw)}")
    return raw
