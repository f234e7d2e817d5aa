"""Parses a command line into a dataclass of options (`core/options.py`), with argparse.

Errors are one line; for an unknown flag they suggest the most similar known one.
"""

import argparse
import contextlib
import dataclasses
import difflib
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from hackmatrix.core import named_code
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import Option, flag, options_of

Options = TypeVar("Options")


def parse(
    options: type[Options], argv: Sequence[str], *, command: str, purpose: str, example: str
) -> Options:
    """Parses a command line into options.

    Fields without a default are positional arguments, as are those that say so.

    Args:
        options: the dataclass.
        argv: the words after the command's name.
        command: the command's name, for example "hackmatrix train".
        purpose: what the command does, for `--help`.
        example: a command line and what it does, for `--help`.

    Raises:
        UserError: a flag is unknown, or a value is not valid.
        SystemExit: after `--help`.
    """
    tables = [options_of(options)]
    (given,) = parse_explicit(tables, argv, command=command, purpose=purpose, example=example)
    return options(**given)


def parse_explicit(
    tables: Sequence[Mapping[str, Option]],
    argv: Sequence[str],
    *,
    command: str,
    purpose: str,
    example: str,
    has_help_all: bool = False,
) -> list[dict[str, Any]]:
    """Like `parse` for several tables of options: returns, for each, only those that were given.

    With `has_help_all`, `--help` shows only those that are `common`, and `--help-all` shows all.
    """
    options = [option for table in tables for option in table.values()]
    positionals = "".join(
        f" {_positional_usage(option)}" for option in options if option.positional
    )
    parser = _Parser(
        prog=command,
        usage=f"{command} [OPTIONS]{positionals}",
        description=purpose,
        epilog=f"example:\n{example}",
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    if has_help_all:
        parser.add_argument("--help-all", action="help", help="show all options and exit")
    shows_all = not has_help_all or "--help-all" in argv
    groups: dict[str | None, argparse._ActionsContainer] = {None: parser}
    for option in options:
        if option.section not in groups:
            groups[option.section] = parser.add_argument_group(option.section)
        _add(groups[option.section], option, is_shown=shows_all or option.common)
    found = vars(parser.parse_args(list(argv))).items()
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in found}
    for option in options:
        if option.names_code and option.name in given:
            named_code.allow(str(given[option.name]))
    return [{name: given[name] for name in table if name in given} for table in tables]


@contextlib.contextmanager
def as_typed(tables: Sequence[Mapping[str, Option]], argv: Sequence[str]) -> Iterator[None]:
    """Context in which errors call an option by the name that was typed, if it has several."""
    try:
        yield
    except UserError as error:
        text, typed = str(error), {word.split("=")[0] for word in argv}
        for option in (option for table in tables for option in table.values()):
            for alias in typed.intersection(map(flag, option.aliases)):
                text = re.sub(rf"{flag(option.name)}(?![\w-])", alias, text)
        raise UserError(text) from error


def run_subcommand(
    command: str, subcommands: Mapping[str, Callable[[list[str]], int]], argv: list[str], text: str
) -> int:
    """Runs the subcommand that the first word names, or prints the help text of the command.

    Raises:
        UserError: it names none of them.
    """
    name, *rest = argv or [""]
    if name in subcommands:
        return subcommands[name](rest)
    if name in ("-h", "--help"):
        print(text, end="")
        return 0
    there = ", ".join(subcommands)
    raise UserError(f"expected one of {there}, got {name!r}: see `{command} --help`")


def move_values_first(argv: list[str], flags: list[str]) -> list[str]:
    """The words with the values of these flags in front, in the order of the flags."""
    argv = [part for word in argv for part in _halves(word, flags)]
    values = []
    for name in flags:
        if name in argv[:-1]:
            at = argv.index(name)
            values.append(argv[at + 1])
            del argv[at : at + 2]
    return [*values, *argv]


def _halves(word: str, flags: list[str]) -> list[str]:
    """`--input=FILE` as two words."""
    name, sign, value = word.partition("=")
    return [name, value] if sign and name in flags else [word]


def _add(parser: argparse._ActionsContainer, option: Option, *, is_shown: bool) -> None:
    settings: dict[str, Any] = {"help": _help(option) if is_shown else argparse.SUPPRESS}
    if option.value_type is bool:
        # `--no-...` can turn off what a configuration file or the default turns on.
        switch = option.default or option.section is not None
        settings["action"] = argparse.BooleanOptionalAction if switch else "store_true"
    else:
        settings["type"] = _converter(option)
    if option.repeated:
        settings["nargs"] = "+"
    if option.positional:
        if option.default is not dataclasses.MISSING:
            settings["nargs"] = "*" if option.repeated else "?"
        parser.add_argument(option.name, **settings)
        return
    if option.value_type is not bool:
        choices = option.choices and f"{{{','.join(option.choices)}}}"
        settings["metavar"] = choices or option.value_type.__name__.upper()
    if option.repeated:
        settings["action"] = "extend"  # the flag may be given again
    flags = [flag(name) for name in (option.name, *option.aliases)]
    parser.add_argument(*flags, dest=option.name, **settings)


def _positional_usage(option: Option) -> str:
    """A positional argument as the usage shows it."""
    name = f"{option.name.upper()}..." if option.repeated else option.name.upper()
    return name if option.default is dataclasses.MISSING else f"[{name}]"


def _help(option: Option) -> str:
    notes = [str(option.limits)] if option.limits else []
    if option.value_type is bool:
        notes += ["default on"] if option.default else []
    elif option.default not in (None, "", (), dataclasses.MISSING):
        notes.append(f"default {option.default}")
    text = f"{option.meaning} ({', '.join(notes)})" if notes else option.meaning
    return text.replace("%", "%%")


def _converter(option: Option) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return option.convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps at spaces alone, so that the name of a file stays whole."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


class _Parser(argparse.ArgumentParser):
    """A parser that raises `UserError` where argparse would print its usage and exit."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            name = unknown[0].split("=")[0]
            initials = "--" + "".join(word[:1] for word in name[2:].split("-"))
            near = difflib.get_close_matches(name, known, n=1) or {initials}.intersection(known)
            hint = f"did you mean {next(iter(near))}?" if near else f"see `{self.prog} --help`"
            raise UserError(f"unknown argument {unknown[0]}, {hint}")
        return parsed

    def error(self, message: str) -> NoReturn:
        raise UserError(message)
