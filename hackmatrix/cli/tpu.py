"""`hackmatrix tpu`: cloud TPUs, through Google's own gcloud."""

import sys
from typing import Any

from hackmatrix.cli.arguments import parse_explicit
from hackmatrix.cli.tpu_options import TpuOptions
from hackmatrix.cli.tpu_subcommands import SUBCOMMANDS, Subcommand, run_lines, run_on_hosts
from hackmatrix.cloud.tpu.description import Description, read_description
from hackmatrix.cloud.tpu.gcloud import Gcloud
from hackmatrix.cloud.tpu.job_files import EXPORTS, export, warnings
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import options_of
from hackmatrix.learning.settings.config import OPTIONS
from hackmatrix.learning.settings.train_options import TrainOptions

_FILE = "my-tpu.yaml"


def main(argv: list[str]) -> int:
    """Runs the command."""
    name, *rest = argv or [""]
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name == "export":
        return _export(rest)
    if name not in SUBCOMMANDS:
        raise UserError(f"expected a subcommand, got {name!r}: see `hackmatrix tpu --help`")
    at = rest.index("--") if "--" in rest else len(rest)
    own, command_line = rest[:at], rest[at + 1 :]
    if command_line and name != "ssh":
        raise UserError("only `hackmatrix tpu ssh FILE -- COMMAND` takes words after --")
    command, called = SUBCOMMANDS[name], f"hackmatrix tpu {name}"
    tpu, options = _read(own, called, command)
    gcloud = Gcloud(lambda line: print(line, flush=True), options.dry_run)
    if command_line:
        return run_on_hosts(called, tpu, options, gcloud, command_line)
    if command.work is not None:
        return command.work(tpu, options, gcloud)
    assert command.lines is not None
    return run_lines(called, options, gcloud, command.lines(tpu, options))


def _read(argv: list[str], called: str, command: Subcommand) -> tuple[Description, Any]:
    """The description and the subcommand's options."""
    flags, explicit = parse_explicit(
        [options_of(Description), options_of(command.options)],
        argv,
        command=called,
        purpose=command.purpose,
        example=f"  {called} {_FILE}",
    )
    tpu = read_description(explicit["file"], flags)
    try:  # here, rather than on the TPU, minutes and dollars later
        tables = [OPTIONS, options_of(TrainOptions)]
        parse_explicit(
            tables, tpu.train_arguments, command="hackmatrix train", purpose="", example=""
        )
    except UserError as error:
        raise UserError(f"{explicit['file']}: train: {error}") from None
    return tpu, command.options(**explicit)


def _export(argv: list[str]) -> int:
    scheduler, *rest = argv or [""]
    usage = f"usage: hackmatrix tpu export {{{','.join(EXPORTS)}}} FILE"
    if scheduler in ("-h", "--help"):
        meanings = "\n".join(f"  {name:<9} {row.meaning}" for name, row in EXPORTS.items())
        print(f"{usage}\n\nPrints the training as a file for another scheduler:\n{meanings}")
        return 0
    if scheduler not in EXPORTS:
        raise UserError(f"expected one of {', '.join(EXPORTS)}, got {scheduler!r}; {usage}")
    purpose = f"Prints the training as {EXPORTS[scheduler].meaning}."
    tpu, _ = _read(rest, f"hackmatrix tpu export {scheduler}", Subcommand(purpose, TpuOptions))
    for warning in warnings(scheduler, tpu):
        print(f"warning: {warning}", file=sys.stderr)  # apart from the file
    print(export(scheduler, tpu), end="")
    return 0


def _help() -> str:
    width = max(map(len, SUBCOMMANDS))
    rows = [f"  {name:<{width}}  {command.purpose}" for name, command in SUBCOMMANDS.items()]
    rows.append(f"  {'export':<{width}}  Prints the training as a file for {', '.join(EXPORTS)}.")
    return "\n".join(
        [
            "usage: hackmatrix tpu COMMAND FILE [--dry-run] ...",
            "",
            "Cloud TPUs through gcloud; each command prints the gcloud lines that it runs.",
            "",
            *rows,
            "",
            "`hackmatrix tpu COMMAND --help` explains a command; all are in",
            "docs/tpu.md",
            "",
            "example:",
            f"  hackmatrix tpu run {_FILE} --dry-run",
        ]
    )
