"""Options of a command as fields of a frozen dataclass: default, meaning and range in one place.

The command line (`cli/arguments.py`) and its help text read them from there.
"""

import dataclasses
import math
from typing import Any, NamedTuple

from hackmatrix.errors import UserError


class Range(NamedTuple):
    """The values a number may take; None: no bound on that side."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or not math.isfinite(value):
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
) -> Any:
    """A dataclass field with its default, what it means (for `--help`) and its range.

    Without a default (`dataclasses.MISSING`) it is a positional argument.
    """
    limits = Range(at_least, above, at_most)
    metadata = {"meaning": meaning, "range": limits if any(b is not None for b in limits) else None}
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
