"""Contests of two agents that stop as soon as their difference is known.

A usual interval that is looked at again and again leaves 0 sooner or later, also if the agents are
equally good. A confidence sequence holds the truth at all looks together with its confidence, so
games may stop at any of them: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform
central limit theory and asymptotic confidence sequences", theorem 2.2
(https://arxiv.org/abs/2103.06476).
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
from hackmatrix.research.evaluation.report import Play, Report
from hackmatrix.research.evaluation.statistics import CONFIDENCE, Estimate, estimate

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
