"""`hackmatrix conformance`: checks the engine against recorded games of the original."""

import argparse
import json
from pathlib import Path
from typing import NoReturn

from hackmatrix.conformance.check import check_game
from hackmatrix.conformance.files import read_games
from hackmatrix.conformance.report import Report
from hackmatrix.errors import UserError

_EXAMPLE = """\
example:
  hackmatrix conformance tests/data/traces_dev.jsonl.gz
      plays every recorded step with the engine and prints, for each action, how many came out as
      recorded, how many differ as section 13 of docs/rules.md declares, and how many failed

Exits with 0 when no step failed, 1 when one did (or when the outcomes of chance, taken together,
are impossible by the rules), 2 when a file cannot be read."""


def main(argv: list[str]) -> int:
    """Checks the files named and prints the report."""
    parser = _Parser(
        prog="hackmatrix conformance",
        description="Check the engine against recorded games of the original.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="recorded games, as JSON lines (.gz or plain)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    report = check_files(options.files)
    print(json.dumps(report.to_json()) if options.json else report.to_text())
    return 0 if report.passed else 1


def check_files(files: list[str]) -> Report:
    """The report on all games of some files."""
    report = Report()
    for file in files:
        report.begin_file(file)
        for number, game in enumerate(read_games(Path(file))):
            for i, verdict in enumerate(check_game(game)):
                report.add(number, i, game.steps[i].action, verdict)
    return report


class _Parser(argparse.ArgumentParser):
    """Raises `UserError` where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)
