"""Runs a benchmark of this folder as a command."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.bench import BenchResult, run
from hackmatrix.cli.main import exit_code
from hackmatrix.research.bench.options import Options

RESULTS = Path("benchmarks")

_DEPTH = 3  # of objects whose members have a line each

Chosen = TypeVar("Chosen", bound=Options)


def run_command(
    name: str,
    measure: Callable[[Chosen], BenchResult],
    options: type[Chosen],
    argv: Sequence[str] | None,
    *,
    purpose: str,
    example: str,
) -> int:
    """Parses the options, runs a benchmark and prints the result; returns the exit code.

    Args:
        name: the benchmark's module in this folder.
        measure: the function that measures.
        options: the dataclass of options that `measure` takes.
        argv: the command line; None for that of the process.
        purpose: what it measures, for `--help`.
        example: options and what they do, for `--help`.
    """
    command = f"python -m benchmarks.{name}"

    def work() -> int:
        chosen = parse(
            options,
            sys.argv[1:] if argv is None else argv,
            command=command,
            purpose=purpose,
            example=f"  {command} {example}",
        )
        return run(measure, chosen)

    return exit_code(command, work)


def to_json(value: Any, depth: int = _DEPTH, indent: str = "") -> str:
    """The value as JSON that can be read and compared line by line, thousands of points too."""
    if not isinstance(value, dict) or depth == 0:
        return json.dumps(value)
    inner = indent + " "
    members = (f"{inner}{json.dumps(k)}: {to_json(v, depth - 1, inner)}" for k, v in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"
