"""The flags of a command, read into its dataclass of options (`hackmatrix/options.py`).

argparse, with one-line errors: an unknown flag is answered with the nearest known one.
"""

import argparse
import dataclasses
import difflib
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, TypeVar

from hackmatrix.errors import UserError
from hackmatrix.options import convert, flag, without_none

Options = TypeVar("Options")


def parse(
    options: type[Options], argv: Sequence[str], *, command: str, purpose: str, example: str
) -> Options:
    """Reads `argv` into a dataclass of options; a field without a default is a positional argument.

    Args:
        options: the dataclass.
        argv: the command line behind the command's name.
        command: its name, as "hackmatrix train".
        purpose: what it does, for `--help`.
        example: a command line with a word on what it does, for `--help`.

    Raises:
        UserError: an unknown flag, or a value of the wrong kind or out of range.
        SystemExit: after `--help`.
    """
    given = parse_given([options], argv, command=command, purpose=purpose, example=example)
    return options(**given)


def parse_given(
    options: Sequence[type], argv: Sequence[str], *, command: str, purpose: str, example: str
) -> dict[str, Any]:
    """As `parse`, for the fields of several dataclasses: the values that were given, by field."""
    parser = _Parser(
        prog=command,
        description=purpose,
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for kind in options:
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            section = field.metadata.get("section")
            if section is None:
                _add(parser, field, hints[field.name])
            else:
                group = groups.setdefault(section, parser.add_argument_group(section))
                _add(group, field, hints[field.name])
    return vars(parser.parse_args(list(argv)))


def _add(parser: argparse._ActionsContainer, field: dataclasses.Field[Any], hint: Any) -> None:
    kind = without_none(hint)
    limits = field.metadata.get("range")
    notes = [str(limits)] if limits else []
    if field.default is dataclasses.MISSING:
        parser.add_argument(field.name, help=_help(field, notes), type=_converter(kind))
        return
    flags = [flag(name) for name in (field.name, *field.metadata["also"])]
    if kind is bool:
        # What a file or a default may turn on, a flag can turn off.
        switch = field.default or field.metadata["section"] is not None
        if field.default:
            notes.append("on unless turned off")
        parser.add_argument(
            *flags,
            dest=field.name,
            action=argparse.BooleanOptionalAction if switch else "store_true",
            help=_help(field, notes),
        )
        return
    if field.default is not None:
        notes.append(f"default {field.default}")
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        parser.add_argument(*flags, dest=field.name, choices=choices, help=_help(field, notes))
    else:
        parser.add_argument(
            *flags,
            dest=field.name,
            type=_converter(kind),
            metavar=kind.__name__.upper(),
            help=_help(field, notes),
        )


def _help(field: dataclasses.Field[Any], notes: list[str]) -> str:
    meaning = field.metadata["meaning"]
    return (f"{meaning} ({', '.join(notes)})" if notes else meaning).replace("%", "%%")


def _converter(kind: type) -> Callable[[str], Any]:
    def converted(text: str) -> Any:
        try:
            return convert(kind, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted


class _Parser(argparse.ArgumentParser):
    """Raises `UserError` where argparse would print its usage and exit."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            near = difflib.get_close_matches(unknown[0].split("=")[0], known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"see `{self.prog} --help`"
            raise UserError(f"unknown argument {unknown[0]}, {hint}")
        return parsed

    def error(self, message: str) -> NoReturn:
        raise UserError(message)
