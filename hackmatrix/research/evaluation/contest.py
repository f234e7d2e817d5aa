"""Several agents on the same games: their reports, and differences with paired intervals.

The dice of a game depend on its number and on the count of actions alone, so agents that play alike
meet the same luck, and the difference of two agents is known better than each of them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.environments.interface.report import Column
from hackmatrix.research.evaluation.report import Report, ends_of
from hackmatrix.research.evaluation.sequential import SequentialVerdict
from hackmatrix.research.evaluation.statistics import Estimate, estimate
from hackmatrix.research.evaluation.streaks import FIGURES, difference
from hackmatrix.research.evaluation.text_table import align_columns


class Entrant(NamedTuple):
    """An agent and its report."""

    name: str
    report: Report


class Contest:
    """Agents that played the same games; the others are compared with the first."""

    def __init__(
        self, entrants: Sequence[Entrant], verdict: SequentialVerdict | None = None
    ) -> None:
        """Compares at least two reports on the same games of one environment.

        Args:
            entrants: their reports.
            verdict: of a sequential test, if their games were stopped by one.
        """
        self.entrants = entrants
        self.verdict = verdict
        first, *others = entrants
        self.differences = [_differences(entrant.report, first.report) for entrant in others]

    def problem(self) -> str | None:
        """The reason why a mean is meaningless, on one line; None if there is none."""
        return next(filter(None, (entrant.report.problem() for entrant in self.entrants)), None)

    def as_dict(self) -> dict[str, Any]:
        """The output of `--json`: each agent's report; but for the first, its lead over it."""
        agents = [{"agent": name, **report.as_dict()} for name, report in self.entrants]
        for agent, differences in zip(agents[1:], self.differences, strict=True):
            agent["minus_first"] = {
                key: {"mean": mean, "ci": [low, high]}
                for key, (mean, low, high) in differences.items()
            }
        told = {} if self.verdict is None else {"sequential": self.verdict.as_dict()}
        return {"episodes": self.entrants[0].report.episodes, **told, "agents": agents}

    def table(self) -> str:
        """A line for each agent, and below each but the first its difference from the first."""
        titles = figures_compared(self.entrants[0].report)
        lines = [["agent", *titles.values()]]
        for place, (name, report) in enumerate(self.entrants):
            found = report.figures()
            lines.append([name, *(str(found[key]) for key in titles)])
            if place:
                found = self.differences[place - 1]
                lines.append(
                    ["  minus the first", *(_format_difference(found[key]) for key in titles)]
                )
        return align_columns(lines) + (f"\n{self.verdict}" if self.verdict is not None else "")


def figures_compared(report: Report) -> dict[str, str]:
    """The titles of the figures that agents are compared by, by their keys."""
    titles = {column.key: column.title for column in _columns_compared(report)}
    return titles if report.streaks is None else titles | dict(FIGURES)


def _columns_compared(report: Report) -> list[Column]:
    """The environment's own columns; those of every environment, if it has none."""
    return report.columns[1:-1] or report.columns


def _differences(one: Report, other: Report) -> dict[str, Estimate]:
    """The difference of each figure over the games, with its paired interval, by its key."""
    means = {
        mine.key: estimate(_floats(mine) - _floats(theirs))
        for mine, theirs in zip(_columns_compared(one), _columns_compared(other), strict=True)
    }
    if one.streaks is None or other.streaks is None:
        return means
    streaks = difference(ends_of(one.accounts), ends_of(other.accounts))
    return means | dict(zip(FIGURES, streaks, strict=True))


def _floats(column: Column) -> Any:
    return np.asarray(column.values).astype(np.float64)


def _format_difference(difference: Estimate) -> str:
    if math.isnan(difference.mean):
        return "-"
    return f"{difference.mean:+.3f}  [{difference.low:+.3f}, {difference.high:+.3f}]"
