"""Options of a command as fields of a frozen dataclass: default, meaning and range in one place.

The command line (`cli/arguments.py`), its help text and configuration files
(`settings/config_file.py`) read them from there.
"""

import dataclasses
import math
import types
import typing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hackmatrix.errors import UserError


class Range(NamedTuple):
    """The values a number may take; None: no bound on that side."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            return False
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        low = "" if self.at_least is None else f"at least {self.at_least:g}"
        low = low if self.above is None else f"above {self.above:g}"
        high = "" if self.at_most is None else f"at most {self.at_most:.12g}"
        return " and ".join(filter(None, (low, high)))


def option(
    default: Any,
    meaning: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    section: str | None = None,
    also: tuple[str, ...] = (),
) -> Any:
    """A dataclass field with its default, what it means (for `--help`) and its range.

    Without a default (`dataclasses.MISSING`) it is a positional argument. `section` is its place
    in a configuration file; `also` are other names of its flag.
    """
    limits = Range(at_least, above, at_most)
    metadata = {
        "meaning": meaning,
        "range": limits if any(b is not None for b in limits) else None,
        "section": section,
        "also": also,
    }
    return dataclasses.field(default=default, metadata=metadata)


def flag(name: str) -> str:
    """The command-line flag of the field `name`."""
    return "--" + name.replace("_", "-")


def check_ranges(options: Any) -> None:
    """Raises `UserError` for the first field out of its range; a field that is None has none."""
    for field in dataclasses.fields(options):
        value, limits = getattr(options, field.name), field.metadata.get("range")
        if limits is not None and value is not None and value not in limits:
            raise UserError(f"{flag(field.name)} must be {limits}, got {value}")


def without_none(hint: Any) -> Any:
    """The type of a value that is there: `int` of `int | None`."""
    if isinstance(hint, types.UnionType):
        (hint,) = (kind for kind in typing.get_args(hint) if kind is not type(None))
    return hint


def convert(hint: Any, value: Any) -> Any:
    """`value`, as text or as YAML gives it, as a value of the field's type.

    Raises:
        ValueError: it is none; the message goes on after the field's name.
    """
    kind = without_none(hint)
    if value is None and kind is not hint:
        return None
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, got {value!r}")
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"must be true or false, got {value!r}")
        return value
    if kind is int:
        return _whole_number(value)
    if kind is float:
        return _number(value)
    if not isinstance(value, str | Path):
        raise ValueError(f"must be text, got {value!r}")
    return kind(value)


def _whole_number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value))  # with underscores
    except ValueError:
        number = _number(value)
    if not number.is_integer():
        raise ValueError(f"must be a whole number, got {value!r}")
    return int(number)  # 1e6


def _number(value: Any) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)  # YAML takes 1e-3 for a word
        except (ValueError, OverflowError):
            pass
    raise ValueError(f"must be a number, got {value!r}")
