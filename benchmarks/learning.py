"""Learning curves of runs: wins and stages of their evaluations, and the stage while training."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import RESULTS, run_command
from benchmarks.plots import panels_plot, require_matplotlib
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options
from hackmatrix.runs.metrics_file import read_metrics

FIGURES = {
    "stats/mean_stage": "highest stage while training",
    "eval/win_rate": "wins in 256 games never trained on",
    "train/entropy": "entropy",
}


@dataclass(frozen=True)
class LearningOptions(Options):
    """The command's options."""

    runs: str = option("", "folders of runs, with commas; unless given, the kept curves are drawn")
    out: Path = option(RESULTS, "folder of learning.json and learning.svg")


@dataclass(frozen=True)
class Curves:
    """Curves of runs by name; each is a list of timesteps and values for each figure."""

    runs: dict[str, Any]
    plot: Path

    def as_dict(self) -> dict[str, Any]:
        """The curves."""
        return self.runs

    def text(self) -> str:
        """The last evaluation of each run."""
        lines = [
            f"{name}: wins {run['eval/win_rate'][-1][1]:.3f}" for name, run in self.runs.items()
        ]
        return "\n".join([*lines, f"drawn in {self.plot}"])


def measure(options: LearningOptions) -> Curves:
    """Reads the runs' metrics, and draws them.

    Raises:
        UserError: a run has no metrics, or matplotlib is missing.
    """
    require_matplotlib()
    kept = options.out / "learning.json"
    if options.runs:
        curves = {Path(run).name: curves_of(Path(run)) for run in options.runs.split(",")}
        kept.write_text(json.dumps(curves) + "\n")
    curves = json.loads(kept.read_text())
    plot = options.out / "learning.svg"
    panels_plot(plot, curves, FIGURES, title="settings `best`, each line a seed")
    return Curves(curves, plot)


def curves_of(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Timesteps and values of each figure."""
    rows: list[dict[str, Any]] = list(read_metrics(run))
    if not rows:
        raise UserError(f"{run}: holds no metrics.jsonl")
    return {
        name: [(row["timesteps"], round(row[name], 4)) for row in rows if name in row]
        for name in FIGURES
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "learning",
        measure,
        LearningOptions,
        argv,
        purpose="Draws learning curves of runs.",
        example="--runs checkpoints/best-0,checkpoints/best-1",
    )


if __name__ == "__main__":
    sys.exit(main())
