"""Groups of agents on the same held-out games: intervals over training seeds and games together.

Agents of a group and games are both samples, and each agent plays each game. The variance of their
mean is that of crossed random effects (Cornfield and Tukey 1956), with Satterthwaite's degrees of
freedom; `benchmarks.coverage` measures how often the intervals hold the truth.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core import student_t
from hackmatrix.core.errors import UserError, in_words
from hackmatrix.research.evaluation.game_rows import name_in
from hackmatrix.research.evaluation.statistics import CONFIDENCE, Estimate
from hackmatrix.research.evaluation.text_table import align_columns

Values = NDArray[np.float64]
Game = tuple[str, str]  # seed and number
Rows = dict[str, dict[Game, dict[str, str]]]  # of each agent, by its name

RETURN = "return"


class Played(NamedTuple):
    """A group of agents, and their values of the metric in the same games."""

    name: str
    agents: list[str]
    values: Values  # [agents, games]


class HeldOut(NamedTuple):
    """Groups that played the same games; the others are compared with the first."""

    metric: str
    groups: list[Played]

    def differences(self) -> dict[str, Estimate]:
        """The mean of each group but the first less that of the first."""
        first, *others = self.groups
        return {each.name: difference(each.values, first.values) for each in others}

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "metric": self.metric,
            "confidence": CONFIDENCE,
            "games": self.groups[0].values.shape[1],
            "groups": [
                {"name": name, "agents": agents, **mean(values)._asdict()}
                for name, agents, values in self.groups
            ],
            "differences": [
                {"group": name, **found._asdict()} for name, found in self.differences().items()
            ],
        }

    def table(self) -> str:
        """The figures as text."""
        first, games = self.groups[0].name, self.groups[0].values.shape[1]
        rows = [["group", "agents", f"mean {self.metric}"]]
        rows += [[name, str(len(agents)), str(mean(x))] for name, agents, x in self.groups]
        for name, (middle, low, high) in self.differences().items():
            rows.append([f"{name} less {first}", "", f"{middle:+.3f}  [{low:+.3f}, {high:+.3f}]"])
        lines = [
            f"{games:,} held-out games [95 % interval over agents and games]",
            align_columns(rows),
        ]
        alone = [each.name for each in self.groups if len(each.agents) == 1]
        if alone:
            lines.append(
                f"{', '.join(alone)}: one agent, so intervals say nothing of other training seeds"
            )
        return "\n".join(lines)


def mean(values: Values) -> Estimate:
    """The mean over agents and games, with its interval; of one agent over games alone.

    Args:
        values: [agents, games], at least two games.
    """
    return _estimate(values.mean(axis=0), [values])


def difference(ours: Values, theirs: Values) -> Estimate:
    """The mean of `ours` less that of `theirs`, with its interval.

    Args:
        ours: [agents, games].
        theirs: [agents, games], other agents in the same games.
    """
    return _estimate(ours.mean(axis=0) - theirs.mean(axis=0), [ours, theirs])


def _estimate(by_game: Values, groups: Sequence[Values]) -> Estimate:
    """The mean of values of games, which are means over the agents of some groups."""
    middle, games = float(by_game.mean()), len(by_game)
    errors = [(float(by_game.var(ddof=1)) / games, games - 1)]  # squared, degrees of freedom
    twice = 0.0  # the chance in single games, which all errors have in them
    for values in groups:
        agents = len(values)
        if agents > 1:
            errors.append((float(values.mean(axis=1).var(ddof=1)) / agents, agents - 1))
            left = values - values.mean(axis=0) - values.mean(axis=1)[:, None] + values.mean()
            cells = (agents - 1) * (games - 1) * agents * games
            twice += float((left**2).sum()) / cells
    variance = max(sum(error for error, _ in errors) - twice, *(error for error, _ in errors), 0.0)
    squares = sum(error**2 / freedom for error, freedom in errors)
    freedom = variance**2 / squares if squares else 1
    reach = student_t.reach(CONFIDENCE, student_t.whole(freedom)) * math.sqrt(variance)
    return Estimate(middle, middle - reach, middle + reach)


def read_held_out(
    arguments: Sequence[str], files: Sequence[Path], metric: str, reference: Sequence[str] = ()
) -> HeldOut:
    """The groups of a command line.

    Args:
        arguments: each an agent, a run or NAME=AGENT,AGENT; a run means all of its agents.
        files: as `hackmatrix evaluate --games` writes them.
        metric: a column of them.
        reference: the name of the group that comes first; empty for the first of them.

    Raises:
        UserError: a file can't be read, no agent has this name or two groups the same one, or they
            have not played the same games.
    """
    rows = _read(files)
    named: dict[str, list[str]] = {}
    for word in arguments:
        name, _, listed = word.rpartition("=") if word not in rows else ("", "", word)
        if (name or listed) in named:
            raise UserError(f"{word}: a group is given once, as NAME=AGENT,AGENT")
        named[name or listed] = _agents(listed.split(","), rows)
    groups = [Played(name, agents, _values(agents, rows, metric)) for name, agents in named.items()]
    if len(reference) > 1 or not set(reference) <= named.keys():
        raise UserError(f"--reference {' '.join(reference)}: is one of {', '.join(named)}")
    return HeldOut(metric, sorted(groups, key=lambda group: group.name not in reference))


def _read(files: Sequence[Path]) -> Rows:
    rows: Rows = {}
    for path in files:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                read = list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            reason = in_words(error) if isinstance(error, OSError) else f"{path}: {error}"
            raise UserError(f"--games {reason}") from None
        for row in read:
            if not row.keys() >= {"agent", "game", "seed"} or None in row.values():
                raise UserError(f"--games {path}: is no file of `hackmatrix evaluate --games`")
            name = name_in(row["agent"])
            games, game = rows.setdefault(name, {}), (row["seed"], row["game"])
            if game in games:
                raise UserError(f"--games {path}: {name} has game {row['game']} twice")
            games[game] = row
    if not rows:
        raise UserError(f"--games {', '.join(map(str, files))}: no game is in it")
    return rows


def _agents(listed: Sequence[str], rows: Rows) -> list[str]:
    """The agents with these names, and those in folders with these names."""
    agents = []
    for word in listed:
        inside = [name for name in rows if word and PurePath(name).is_relative_to(word)]
        if not inside:
            raise UserError(f"{word or '(nothing)'}: has no games; there are {', '.join(rows)}")
        agents += inside
    if len(set(agents)) < len(agents):
        raise UserError(f"{','.join(listed)}: names an agent twice")
    return agents


def _values(agents: Sequence[str], rows: Rows, metric: str) -> Values:
    """The values of agents in all games [agents, games]."""
    games = next(iter(rows.values()))
    if len(games) < 2:
        raise UserError("--games: a single game has no interval")
    for agent in agents:
        if rows[agent].keys() != games.keys():
            raise UserError(f"{agent}: has played other games than {next(iter(rows))}")
        row = rows[agent][next(iter(games))]
        if metric not in row:
            raise UserError(f"--metric {metric}: the games have {', '.join(row)}")
    try:
        values = [[float(rows[agent][game][metric]) for game in games] for agent in agents]
    except ValueError as error:
        raise UserError(f"--metric {metric}: not all games have a number of it ({error})") from None
    if not np.isfinite(values).all():
        raise UserError(f"--metric {metric}: is not finite in all games")
    return np.array(values)
