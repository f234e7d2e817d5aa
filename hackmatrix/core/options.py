"""Options of a command as fields of a frozen dataclass: default, meaning and valid values.

The command line (`cli/arguments.py`), its help texts and configuration files
(`learning/settings/config_file.py`) are derived from these fields.
"""

import dataclasses
import math
import typing
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hackmatrix.core.errors import UserError

PRESENCE = "given"


class OptionRange(NamedTuple):
    """The valid range of a number; a bound that is None does not apply."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    def __contains__(self, value: object) -> bool:
        return (
            isinstance(value, int | float)
            and (isinstance(value, int) or math.isfinite(value))
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        low = "" if self.at_least is None else f"at least {self.at_least:g}"
        low = low if self.above is None else f"above {self.above:g}"
        high = "" if self.at_most is None else f"at most {self.at_most:.12g}"
        return " and ".join(filter(None, (low, high)))


class Option(NamedTuple):
    """A field of a dataclass of options, with its type resolved."""

    name: str
    value_type: type  # str, int, float, bool, Path, or a class that has `of`
    optional: bool  # whether None is a valid value
    repeated: bool  # whether it is a tuple of values, given one after another
    default: Any  # dataclasses.MISSING for a positional argument
    meaning: str
    limits: OptionRange | None
    choices: Collection[str] | None
    section: str | None
    key: str  # its name there
    other_keys: tuple[str, ...]  # SECTION.NAME that mean it too
    compiled: bool | str
    aliases: tuple[str, ...]
    common: bool  # shown by a `--help` that shows only these
    positional: bool  # given without a flag, with or without a default
    names_code: bool  # whether a user who gives it lets the code run that it names

    def convert(self, value: Any) -> Any:
        """Converts a value given as text or by YAML to a valid value of the option.

        Raises:
            ValueError: the value is not valid. The message continues a sentence that begins with
                the option's name.
        """
        if value is None and self.optional:
            return None
        value = convert(self.value_type, value) if self.choices is None else value
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        """Raises `ValueError` if `value` is outside the range or not among the choices."""
        known = self.choices is None or (isinstance(value, str) and value in self.choices)
        if not known:
            raise ValueError(f"must be one of {', '.join(self.choices or ())}, got {value!r:.60}")
        if self.limits is not None and value not in self.limits:
            raise ValueError(f"must be {self.limits}, got {value!s:.60}")


def option(
    default: Any,
    meaning: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    choices: Collection[str] | None = None,
    section: str | None = None,
    key: str | None = None,
    other_keys: tuple[str, ...] = (),
    compiled: bool | str = True,
    aliases: tuple[str, ...] = (),
    common: bool = False,
    positional: bool = False,
    names_code: bool = False,
) -> Any:
    """A dataclass field with its default, its meaning and its valid values.

    Args:
        default: the default; `dataclasses.MISSING` makes the field a positional argument.
        meaning: what the option does, for `--help`.
        at_least: smallest value of a number.
        above: bound that a number must exceed.
        at_most: largest value of a number.
        choices: the valid values of a `str`, for example the keys of a table. They are looked up
            at each use, so what is added to the table later is valid too. A field of a `Literal`
            type has its choices already.
        section: the section of a configuration file in which the option stands; by default the
            `SECTION` of its class.
        key: its name there, if it is another.
        other_keys: other trainers' names for it there, as SECTION.NAME.
        compiled: whether compiled programs of a run are others where this setting is another; they
            are not where they take it as an input, or never read it; `PRESENCE`: they are where it
            is None, and take other values as an input.
        aliases: other names of its flag.
        common: whether `--help` shows it where there is a `--help-all` for the others.
        positional: makes a field with a default a positional argument too, of any number of values.
        names_code: whether the code of this name runs if the command line gives it, see
            `core/named_code.py`.
    """
    limits = OptionRange(at_least, above, at_most)
    metadata = {
        "meaning": meaning,
        "limits": None if limits == OptionRange() else limits,
        "choices": choices,
        "section": section,
        "key": key,
        "other_keys": other_keys,
        "compiled": compiled,
        "aliases": aliases,
        "common": common,
        "positional": positional or default is dataclasses.MISSING,
        "names_code": names_code,
    }
    return dataclasses.field(default=default, metadata=metadata)


def options_of(dataclass: type) -> dict[str, Option]:
    """The options of a dataclass whose fields are made with `option`, by name."""
    hints = typing.get_type_hints(dataclass)
    return {
        field.name: _option_of(field, hints[field.name], getattr(dataclass, "SECTION", None))
        for field in dataclasses.fields(dataclass)
    }


def _option_of(field: dataclasses.Field[Any], hint: Any, section: str | None) -> Option:
    optional = type(None) in typing.get_args(hint)
    if optional:
        (hint,) = (each for each in typing.get_args(hint) if each is not type(None))
    repeated = typing.get_origin(hint) is tuple
    if repeated:
        hint = typing.get_args(hint)[0]
    metadata = dict(field.metadata)
    metadata["section"] = metadata["section"] or section
    metadata["key"] = metadata["key"] or field.name
    if typing.get_origin(hint) is Literal:
        metadata["choices"], hint = typing.get_args(hint), str
    return Option(
        name=field.name,
        value_type=hint,
        optional=optional,
        repeated=repeated,
        default=field.default,
        **metadata,
    )


def flag(name: str) -> str:
    """The command-line flag of the field `name`."""
    return "--" + name.replace("_", "-")


def check(options: object) -> None:
    """Checks every field of a dataclass of options; None is not checked.

    Raises:
        UserError: a value is outside its range or not among its choices.
    """
    for spec in options_of(type(options)).values():
        if (value := getattr(options, spec.name)) is not None:
            try:
                for one in value if spec.repeated else (value,):
                    spec.check(one)
            except ValueError as error:
                raise UserError(f"{flag(spec.name)} {error}") from None


def convert(target_type: type, value: Any) -> Any:
    """Converts a value given as text or by YAML to `target_type`, see `Option.value_type`.

    Raises:
        ValueError: see `Option.convert`.
    """
    if target_type is bool:
        if not isinstance(value, bool):
            raise ValueError(f"must be true or false, got {value!r:.60}")
        return value
    if target_type is int:
        return _whole_number(value)
    if target_type is float:
        return _parse_number(value)
    if hasattr(target_type, "of"):
        return target_type.of(value)
    if not isinstance(value, str | Path):
        raise ValueError(f"must be text, got {value!r:.60}")
    if "\0" in str(value):
        raise ValueError("must be text without the character 0")
    return target_type(value)


def _whole_number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value))  # underscores are fine, as in 1_000
    except ValueError:
        number = _parse_number(value)
    if not number.is_integer():
        raise ValueError(f"must be a whole number, got {value!r:.60}")
    return int(number)  # as in 1e6


def _parse_number(value: Any) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)  # YAML reads 1e-3 as text
        except (ValueError, OverflowError):
            pass
    raise ValueError(f"must be a number, got {value!r:.60}")
