"""`hackmatrix conformance`: checks the engine against recorded games of the original."""

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.cli.arguments import parse
from hackmatrix.core.options import option
from hackmatrix.game.conformance.check import check_game
from hackmatrix.game.conformance.format import read_games
from hackmatrix.game.conformance.verdicts import ConformanceReport

_EXAMPLE = """\
  hackmatrix conformance tests/data/traces_dev.jsonl.gz
      replays every recorded step and prints, for each action, how many steps came out as recorded,
      how many after a difference that section 13 of docs/rules.md declares, and how many failed

Exit codes: 0 if no step failed, 1 if one did (or if the random outcomes, taken together, are
impossible by the rules), 2 if a file cannot be read."""


@dataclass(frozen=True)
class ConformanceOptions:
    """The command's options."""

    files: tuple[Path, ...] = option(
        dataclasses.MISSING, "recorded games, as JSON lines (.gz or plain)"
    )
    json: bool = option(False, "print one JSON object")


def main(argv: list[str]) -> int:
    """Checks the given files and prints the report."""
    options = parse(
        ConformanceOptions,
        argv,
        command="hackmatrix conformance",
        purpose="Checks the engine against recorded games of the original.",
        example=_EXAMPLE,
    )
    report = check_files(options.files)
    print(json.dumps(report.to_json()) if options.json else report.to_text())
    return 0 if report.passed else 1


def check_files(files: Iterable[Path]) -> ConformanceReport:
    """The report on all games of the files."""
    report = ConformanceReport()
    for file in files:
        report.begin_file(str(file))
        for number, game in enumerate(read_games(file)):
            for i, verdict in enumerate(check_game(game)):
                report.add(number, i, game.steps[i].action, verdict)
    return report
