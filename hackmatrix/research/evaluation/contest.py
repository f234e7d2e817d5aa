"""Several agents on the same games: their reports, and differences with paired intervals.

The dice of a game depend on its number and on the count of actions alone, so agents that play alike
meet the same luck, and the difference of two agents is known better than each of them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.report import Column
from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Play, Report, ends_of
from hackmatrix.research.evaluation.statistics import CONFIDENCE, Estimate, estimate
from hackmatrix.research.evaluation.streaks import FIGURES, difference
from hackmatrix.research.evaluation.text_table import align_columns

# --- Contests of two agents that stop as soon as their difference is known ------------------------
#
# A usual interval that is looked at again and again leaves 0 sooner or later, also if the agents
# are
# equally good. A confidence sequence holds the truth at all looks together with its confidence, so
# games may stop at any of them: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-
# uniform
# central limit theory and asymptotic confidence sequences", theorem 2.2
# (https://arxiv.org/abs/2103.06476).


LOOK = 100  # games between two looks; the theorem is one of large numbers


class SequentialVerdict(NamedTuple):
    """The difference of a second agent from a first one, at the look at which games stopped."""

    key: str  # of the column
    title: str
    difference: Estimate  # a confidence sequence
    games: int
    at_most: int

    @property
    def is_decided(self) -> bool:
        """Whether the interval is without 0."""
        return self.difference.low > 0 or self.difference.high < 0

    def as_dict(self) -> dict[str, Any]:
        """The entry of `--json`."""
        mean, low, high = self.difference
        facts = {"column": self.key, "decided": self.is_decided, "mean": mean, "ci": [low, high]}
        return {**facts, "games": self.games, "at_most": self.at_most}

    def __str__(self) -> str:
        mean, low, high = self.difference
        how = "decided" if self.is_decided else "not decided"
        return (
            f"{self.title} {how} after {self.games:,} of at most {self.at_most:,} games: "
            f"{mean:+.3f}  [{low:+.3f}, {high:+.3f}], an interval that holds wherever games stop"
        )


def confidence_sequence(values: NDArray[np.float64], planned: int) -> Estimate:
    """The mean of values [n] so far, with an interval that holds for all n together.

    Args:
        values: independent ones, or nearly so.
        planned: the largest n. The interval is narrowest about half-way.
    """
    outside, count = 1 - CONFIDENCE, len(values)
    rate = -2 * math.log(outside)
    rate = 2 * (rate + math.log(rate) + 1) / planned
    grown = count * rate + 1
    reach = math.sqrt(2 * grown / (count**2 * rate) * math.log(math.sqrt(grown) / outside))
    mean = float(values.mean())
    return Estimate(mean, mean - reach * float(values.std()), mean + reach * float(values.std()))


def play_until_decided(
    plays: Sequence[Play], limits: Limits, key: str
) -> tuple[list[Report], SequentialVerdict]:
    """Plays the same games with two agents, a portion at a time, until their difference is known.

    Args:
        plays: how each plays portions of `portion(limits)` games.
        limits: the games at most.
        key: of the column by which they are compared, such as "win_rate".

    Returns:
        Their reports on the games that were played, and the verdict: the second less the first.

    Raises:
        UserError: there is no such column, or not all games have a value of it.
    """
    size = portion(limits).episodes
    parts: list[list[Report]] = [[], []]
    for first in range(limits.first, limits.first + limits.episodes, size):
        for played, play in zip(parts, plays, strict=True):
            played.append(play((), first))
        reports = [_join_reports(played, limits) for played in parts]
        theirs, ours = (_column(report, key) for report in reports)
        differences = ours.values.astype(np.float64) - theirs.values.astype(np.float64)
        found = confidence_sequence(differences, limits.episodes)
        verdict = SequentialVerdict(key, ours.title, found, reports[0].episodes, limits.episodes)
        if verdict.is_decided:
            break
    return reports, verdict


def portion(limits: Limits) -> Limits:
    """The games until the first look.

    Raises:
        UserError: the games can't be divided into portions.
    """
    if limits.episodes > LOOK and limits.episodes % LOOK:
        raise UserError(
            f"--episodes {limits.episodes}: --sequential looks every {LOOK} games: give a multiple"
        )
    return limits._replace(episodes=min(limits.episodes, LOOK))


def _column(report: Report, key: str) -> Column:
    whole = {column.key: column for column in report.columns if column.chosen is None}
    if key not in whole:
        raise UserError(f"--sequential {key}: must be one of {', '.join(whole)}")
    return whole[key]._replace(values=np.asarray(whole[key].values))


def _join_reports(reports: Sequence[Report], limits: Limits) -> Report:
    """One report on the games of several, without breakdowns: it is not known how those add up."""
    episodes = sum(report.episodes for report in reports)
    if reports[0].accounts:  # of HackMatrix, which tell all
        accounts = [account for report in reports for account in report.accounts]
        return report_of_accounts(accounts, limits._replace(episodes=episodes))
    columns = []
    for each in zip(*(report.columns for report in reports), strict=True):
        values = np.concatenate([column.values for column in each])
        chosen = [column.chosen for column in each if column.chosen is not None]
        columns.append(
            each[0]._replace(values=values, chosen=np.concatenate(chosen) if chosen else None)
        )
    return Report(
        episodes=episodes,
        columns=columns,
        estimates=[estimate(column.values) for column in columns],
        terminated=np.concatenate([report.terminated for report in reports]),
        breakdowns=[],
        limits=limits._replace(episodes=episodes),
    )


# --- Several agents on the same games: their reports, and differences with paired intervals -------


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
