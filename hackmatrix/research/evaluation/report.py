"""The report of an evaluation: a table for people, a dictionary for programs."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.game.engine.state import Ending
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.findings import Findings, find
from hackmatrix.research.evaluation.game_rows import Rows, rows_of_accounts, rows_of_columns
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.statistics import Estimate, estimate
from hackmatrix.research.evaluation.streaks import FIGURES, Streaks, streaks_of

_FIRST_GAMES = Limits()


class Report(NamedTuple):
    """Results of an evaluation."""

    episodes: int
    columns: list[Column]  # return first, length last, the environment's own in between
    estimates: list[Estimate]  # one for each column
    terminated: Any  # bool[episodes], which games ended by themselves
    breakdowns: list[Breakdown]
    limits: Limits = _FIRST_GAMES
    accounts: Sequence[Account] = ()  # of HackMatrix only, as is what follows
    findings: Findings | None = None
    streaks: Streaks | None = None

    def __repr__(self) -> str:
        means = (
            f"{column.title} {found.mean:.4g} [{found.low:.4g}, {found.high:.4g}]"
            for column, found in zip(self.columns, self.estimates, strict=True)
        )
        return f"<{self.episodes:,} games: {', '.join(means)}; table() shows all>"

    @property
    def truncated(self) -> int:
        """The number of games that were cut off."""
        return int((~self.terminated).sum())

    @property
    def invalid_actions(self) -> int:
        """The number of games of HackMatrix that an invalid action ended."""
        return sum(each.ending == Ending.INVALID_ACTION for each in self.accounts)

    @property
    def wins(self) -> Estimate:
        """The share of games won, of HackMatrix, with its 95 % interval (Wilson)."""
        return self._estimate("win_rate")

    @property
    def stages(self) -> Estimate:
        """The mean number of stages cleared, 0..8, of HackMatrix, with its 95 % interval."""
        return self._estimate("mean_stages_cleared")

    @property
    def score(self) -> Estimate:
        """The mean score, of HackMatrix, with its 95 % interval."""
        return self._estimate("mean_score")

    def _estimate(self, key: str) -> Estimate:
        for column, estimated in zip(self.columns, self.estimates, strict=True):
            if column.key == key:
                return estimated
        known = ", ".join(column.key for column in self.columns)
        raise UserError(f"no {key} is reported of this environment; there are {known}")

    @property
    def games(self) -> Rows:
        """A row for each game.

        Of HackMatrix `game` (its number), `seed`, `won`, `streak` (wins in a row up to it),
        `stages` (cleared), `score`, `return`, `steps`, `ending` ("won", "died", "invalid_action"
        or "cut_off"), `killer` (kind of the enemy that took the last hp), `hits`, `siphonings`,
        `programs` (owned at the end) and `programs_run`; of other environments the columns of
        their report.
        """
        if self.accounts:
            return rows_of_accounts(self.accounts, self.limits)
        return rows_of_columns(self.columns, self.terminated, self.limits)

    def means(self) -> dict[str, float]:
        """The mean of each column, by the column's key."""
        return {c.key: e.mean for c, e in zip(self.columns, self.estimates, strict=True)}

    def figures(self) -> dict[str, Estimate]:
        """The means, and of HackMatrix the figures of its streaks, with intervals, by key."""
        keys = [column.key for column in self.columns]
        found = dict(zip(keys, self.estimates, strict=True))
        return found | dict(zip(FIGURES, self.streaks or (), strict=self.streaks is not None))

    def problem(self) -> str | None:
        """The reason why a mean is meaningless, on one line; None if there is none."""
        for column in self.columns:
            if bad := int((~np.isfinite(column.values)).sum()):
                return (
                    f"the {column.title} of {bad:,} of {self.episodes:,} games is not finite: the "
                    "environment pays or reports NaN or infinity"
                )
        return None

    def as_dict(self) -> dict[str, Any]:
        """The output of `--json`; what is not finite may be in it."""
        facts: dict[str, Any] = {"episodes": self.episodes}
        for column, (mean, low, high) in zip(self.columns, self.estimates, strict=True):
            facts |= {column.key: mean, column.interval_key: [low, high]}
        facts["truncated"] = self.truncated
        facts |= {each.key: each.values for each in self.breakdowns}
        for found in (self.streaks, self.findings):
            facts |= {} if found is None else found.as_dict()
        return facts

    def table(self) -> str:
        """The report as lines of text."""
        rows: list[tuple[str, object]] = [("games", f"{self.episodes:,}")]
        rows += [(c.title, e) for c, e in zip(self.columns, self.estimates, strict=True)]
        if self.streaks is not None:
            rows += zip(FIGURES.values(), self.streaks, strict=True)
        rows += [("cut off", f"{self.truncated:,}")]
        if self.invalid_actions:
            rows += [("invalid action", f"{self.invalid_actions:,}")]
        rows += [(each.title, _format_breakdown(each)) for each in self.breakdowns]
        width = max(16, *(len(name) + 2 for name, _ in rows))
        lines = "\n".join(f"{name:<{width}}{value}" for name, value in rows)
        tables = self.findings.tables() if self.findings else []
        return "\n\n".join([lines, *(table.text() for table in tables)])


class Play(Protocol):
    """Plays games without some actions, and reports on them."""

    def __call__(self, forbidden: Collection[int] = (), first: int | None = None) -> Report:
        """Plays as many games as its limits say, from the first of them or another one on."""


def report_on(
    own: Sequence[Column | Breakdown],
    games: PlayedGames,
    limits: Limits = _FIRST_GAMES,
    accounts: Sequence[Account] = (),
) -> Report:
    """The report on played games.

    Args:
        own: the environment's columns and breakdowns of them, as by `report_of`.
        games: at least one game.
        limits: which games they are.
        accounts: what happened in each, if that is told.
    """
    columns = [
        Column("return", "mean_return", games.returns),
        *(each for each in own if isinstance(each, Column)),
        Column("length", "mean_length", games.lengths, "length_ci"),
    ]
    return Report(
        episodes=len(games.returns),
        columns=columns,
        estimates=[estimate(column.values) for column in columns],
        terminated=np.asarray(games.terminated),
        breakdowns=[each for each in own if isinstance(each, Breakdown)],
        limits=limits,
        accounts=accounts,
        findings=find(accounts) if accounts else None,
        streaks=streaks_of(*ends_of(accounts)) if accounts else None,
    )


def ends_of(accounts: Sequence[Account]) -> tuple[Any, Any]:
    """Whether each game was won, bool[N], and its score, int64[N]."""
    won = np.array([account.won for account in accounts])
    return won, np.array([account.score for account in accounts])


def _format_breakdown(breakdown: Breakdown) -> str:
    used = {name: number for name, number in breakdown.values.items() if number}
    largest_first = sorted(used, key=lambda name: -used[name])
    return "  ".join(f"{name} {used[name]:{breakdown.form}}" for name in largest_first) or "-"
