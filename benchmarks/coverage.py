"""Coverage of the intervals of `hackmatrix compare`, by the number of seeds."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import run_command
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options
from hackmatrix.research.comparison.estimates import estimates, resampled

SEEDS = (2, 3, 5, 10, 20)


@dataclass(frozen=True)
class CoverageOptions(Options):
    """The options of the command."""

    groups: int = option(10_000, "groups of agents that are drawn for each number", at_least=1)


class Coverage(NamedTuple):
    """The share of intervals that hold the truth."""

    groups: int
    shares: dict[int, float]  # by number of seeds

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return self._asdict()

    def text(self) -> str:
        """The figures as text."""
        lines = [f"{'seeds':>5}  intervals of {self.groups:,} groups that hold the truth"]
        return "\n".join([*lines, *(f"{n:>5}  {share:.1%}" for n, share in self.shares.items())])


def measure(options: CoverageOptions) -> Coverage:
    """Draws groups of agents whose scores are normal with mean 0, and looks at their intervals."""
    rng = np.random.default_rng(0)
    shares = {}
    for seeds in SEEDS:
        found = estimates(rng.normal(size=(options.groups, seeds)), resampled([seeds]))
        shares[seeds] = sum(each.low <= 0 <= each.high for each in found) / options.groups
    return Coverage(options.groups, shares)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "coverage",
        measure,
        CoverageOptions,
        argv,
        purpose="Simulates how often the 95 % intervals of `hackmatrix compare` hold the truth, by "
        "the number of seeds.",
        example="--groups 1000\n      a thousand groups of each number of seeds",
    )


if __name__ == "__main__":
    sys.exit(main())
