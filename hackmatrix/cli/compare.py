"""`hackmatrix compare`: runs against runs, over their seeds."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local_runs
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import check_writable
from hackmatrix.core.options import check, option

_EXAMPLE = """\
  hackmatrix compare checkpoints/a-0 checkpoints/a-1 checkpoints/b-0 checkpoints/b-1
      compares groups of runs; runs whose settings differ only in the seed form one group
  hackmatrix compare old=checkpoints/a-0,checkpoints/a-1 new=checkpoints/b-0,checkpoints/b-1
      names the groups; the first is what the others are compared with
  hackmatrix compare old=checkpoints/a-0,checkpoints/a-1 new=checkpoints/b-0 --games games.csv
      compares agents in the games that `evaluate --games games.csv` wrote"""


@dataclass(frozen=True)
class CompareOptions:
    """The command's options."""

    runs: tuple[str, ...] = option(
        dataclasses.MISSING,
        "folders of runs, here or as gs://..., or groups of them, as NAME=RUN,RUN",
    )
    metric: str | None = option(
        None,
        "metric to compare, a name in metrics.jsonl; by default eval/mean_return, or the return "
        "in training if a run has no evaluations; with --games a column, by default `return`",
    )
    games: tuple[Path, ...] = option(
        (),
        "compare evaluations instead of curves: files of `hackmatrix evaluate --games` (.csv); "
        "RUNS then names their agents",
    )
    reference: tuple[str, ...] = option(
        (),
        "name of the group to compare the others with, by default the first; or for each "
        "environment ENV=LOW,HIGH, the values that count as 0 and 1",
    )
    plot: Path | None = option(None, "write the curves to this file (.svg)")
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check(self)
        if self.plot is not None and self.plot.suffix != ".svg":
            raise UserError(f"--plot {self.plot}: must end in .svg")
        if self.plot is not None and self.games:
            raise UserError("--plot draws curves of runs: give it without --games")
        if self.plot is not None:
            check_writable(self.plot, f"--plot {self.plot}")


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        CompareOptions,
        argv,
        command="hackmatrix compare",
        purpose="Compares runs by interquartile means over their seeds, with intervals, at equal "
        "steps and at equal seconds of training.",
        example=_EXAMPLE,
    )
    if options.games:
        from hackmatrix.research.comparison.held_out import RETURN, read_held_out

        found = read_held_out(
            options.runs, options.games, options.metric or RETURN, options.reference
        )
        print(json.dumps(found.as_dict()) if options.json else found.table())
        return 0
    from hackmatrix.core.files import write_atomically
    from hackmatrix.research.comparison.curves import shared_metric
    from hackmatrix.research.comparison.equal_budgets import Comparison, table
    from hackmatrix.research.comparison.groups import apply_reference, groups_of, read_groups

    runs, named = read_groups([_local(word) for word in options.runs])
    metric = options.metric or shared_metric(runs)
    groups, scales = apply_reference(groups_of(runs, named, metric), options.reference)
    comparison = Comparison(metric, groups, scales)
    if options.plot is not None:
        write_atomically(options.plot, comparison.plot().encode())
    print(json.dumps(comparison.as_dict()) if options.json else table(comparison))
    return 0


def _local(word: str) -> str:
    """A run or NAME=RUN,RUN with folders here in place of those in buckets."""
    name, sign, runs = word.rpartition("=")
    return name + sign + ",".join(local_runs(run) for run in runs.split(","))
