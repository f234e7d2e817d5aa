"""Reads JSON data field by field; errors name the field."""

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from hackmatrix.core.errors import UserError
from hackmatrix.game.rules.board import SIZE


class IllegalStateError(UserError):
    """Data that is not a legal state; the message names the field."""


class Fields:
    """The fields of one JSON object, consumed one by one; fields left at the end are unknown."""

    def __init__(self, data: Any, path: str) -> None:
        """Starts reading an object.

        Args:
            data: the JSON value, which should be an object.
            path: its name in messages, empty for the whole.
        """
        if not isinstance(data, dict):
            raise IllegalStateError(
                f"{path or 'state'}: expected an object, got {format_value(data)}"
            )
        self.left = dict(data)
        self.prefix = f"{path}." if path else ""

    def take(self, name: str, default: Any = ...) -> Any:
        """Consumes a field of any value; without a default it is required."""
        if name not in self.left and default is ...:
            raise IllegalStateError(f"{self.prefix}{name}: missing")
        return self.left.pop(name, default)

    def integer(self, name: str, low: int, high: int, default: Any = ...) -> int:
        """Consumes an integer from `low` to `high`."""
        value = self.take(name, default)
        if type(value) is not int or not low <= value <= high:
            self.refuse(name, value, f"expected {low}..{high}")
        return value

    def flag(self, name: str) -> bool:
        """Consumes a bool; False if missing."""
        value = self.take(name, False)
        if type(value) is not bool:
            self.refuse(name, value, "expected true or false")
        return value

    def choice(self, name: str, options: Iterable[str]) -> str:
        """Consumes a string that must be one of the options."""
        value, names = self.take(name), list(options)
        if value not in names:
            self.refuse(name, value, f"expected one of {', '.join(names)}")
        return str(value)

    def cell(self, name: str) -> int:
        """Consumes a cell written as [row, col]."""
        value = self.take(name)
        if not isinstance(value, list) or len(value) != 2 or not all(map(_on_board, value)):
            self.refuse(name, value, f"expected [row, col] with 0..{SIZE - 1}")
        return int(value[0] * SIZE + value[1])

    def coordinates(self) -> int:
        """Consumes a cell written as the fields `row` and `col`."""
        return self.integer("row", 0, SIZE - 1) * SIZE + self.integer("col", 0, SIZE - 1)

    def items(self, name: str, low: int, high: int, default: Any = ...) -> list[tuple[Any, str]]:
        """Consumes a list of `low` to `high` items; returns each with its path."""
        value = self.take(name, default)
        if not isinstance(value, list) or not low <= len(value) <= high:
            bounds = str(low) if low == high else f"{low}..{high}"
            self.refuse(name, value, f"expected a list of {bounds}")
        return [(item, f"{self.prefix}{name}[{i}]") for i, item in enumerate(value)]

    def refuse(self, name: str, value: Any, why: str) -> NoReturn:
        """Raises the error that names the field."""
        raise IllegalStateError(f"{self.prefix}{name}: {why}, got {format_value(value)}")

    def end(self) -> None:
        """Raises an error if a field was not consumed."""
        for name in self.left:
            raise IllegalStateError(f"{self.prefix}{name}: unknown field")


def _on_board(value: Any) -> bool:
    return type(value) is int and 0 <= value < SIZE


def format_value(value: Any) -> str:
    """A value as messages show it, in the words of JSON."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    text = json.dumps(value, default=repr)
    return text if len(text) <= 40 else f"{text[:37]}..."
