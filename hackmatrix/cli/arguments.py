"""The flags of a command, read into its dataclass of options (`hackmatrix/options.py`).

argparse, with one-line errors: an unknown flag is answered with the nearest known one.
"""

import argparse
import dataclasses
import difflib
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, TypeVar

from hackmatrix.errors import UserError
from hackmatrix.options import flag

Options = TypeVar("Options")


def parse(
    options: type[Options], argv: Sequence[str], *, command: str, purpose: str, example: str
) -> tuple[Options, set[str]]:
    """Reads `argv` into a dataclass of options; a field without a default is a positional argument.

    Args:
        options: the dataclass.
        argv: the command line behind the command's name.
        command: its name, as "hackmatrix train".
        purpose: what it does, for `--help`.
        example: a command line with a word on what it does, for `--help`.

    Returns:
        The options, and the names of the fields that were given.

    Raises:
        UserError: an unknown flag, or a value of the wrong kind or out of range.
        SystemExit: after `--help`.
    """
    parser = _Parser(
        prog=command,
        description=purpose,
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    hints = typing.get_type_hints(options)
    for field in dataclasses.fields(options):  # type: ignore[arg-type]
        _add(parser, field, hints[field.name])
    given = vars(parser.parse_args(list(argv)))
    return options(**given), set(given)


def _add(parser: argparse.ArgumentParser, field: dataclasses.Field[Any], hint: Any) -> None:
    kind = _without_none(hint)
    limits = field.metadata.get("range")
    notes = [str(limits)] if limits else []
    if field.default is dataclasses.MISSING:
        parser.add_argument(field.name, help=_help(field, notes), type=_converter(kind))
        return
    if field.default is not None and kind is not bool:
        notes.append(f"default {field.default}")
    if kind is bool:
        parser.add_argument(flag(field.name), action="store_true", help=_help(field, notes))
    elif typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        parser.add_argument(flag(field.name), choices=choices, help=_help(field, notes))
    else:
        parser.add_argument(
            flag(field.name),
            type=_converter(kind),
            metavar=kind.__name__.upper(),
            help=_help(field, notes),
        )


def _help(field: dataclasses.Field[Any], notes: list[str]) -> str:
    meaning = field.metadata["meaning"]
    return (f"{meaning} ({', '.join(notes)})" if notes else meaning).replace("%", "%%")


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        (hint,) = (kind for kind in typing.get_args(hint) if kind is not type(None))
    return hint


def _converter(kind: type) -> Callable[[str], Any]:
    return {int: _whole_number, float: _number}.get(kind, kind)


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        value = _number(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(value)  # 1e6


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


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
