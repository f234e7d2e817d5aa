"""Compares groups of agents at equal steps and at equal seconds: a table, JSON and a plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hackmatrix.core.charts import Line, Panel, picture
from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.curves import EVALUATED, Values
from hackmatrix.research.comparison.estimates import FEW, Indices, differences, estimates, resampled
from hackmatrix.research.comparison.groups import Group
from hackmatrix.research.evaluation.statistics import CONFIDENCE, Estimate

_QUARTERS = (0.25, 0.5, 0.75, 1.0)
_PLOTTED = 60  # points of a curve


@dataclass(frozen=True)
class Difference:
    """A group's gain over the first one."""

    group: str
    paired: str | None  # what pairs their agents; None if the groups are resampled apart
    estimates: list[Estimate]


@dataclass(frozen=True)
class AtEqual:
    """Groups at equal steps, or at equal seconds."""

    name: str  # "steps" or "seconds"
    shortest: str  # the run that ends first
    places: Values
    groups: dict[str, list[Estimate]]
    differences: list[Difference]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "at": [float(place) for place in self.places],
            "shortest": self.shortest,
            "groups": {name: [_as_dict(each) for each in row] for name, row in self.groups.items()},
            "differences": [
                {
                    "group": each.group,
                    "paired_by": each.paired,
                    "values": [_as_dict(value) for value in each.estimates],
                }
                for each in self.differences
            ],
        }


@dataclass(frozen=True)
class Comparison:
    """Groups of agents, compared by a metric."""

    metric: str
    groups: Sequence[Group]

    def __post_init__(self) -> None:
        for seconds in (False, True):
            self._span(seconds=seconds)

    def at_equal(self, *, seconds: bool, places: Values | None = None) -> AtEqual:
        """The groups at some places; unless given, at each quarter that all agents have reached."""
        start, end, shortest = self._span(seconds=seconds)
        if places is None:
            places = np.array([q * end for q in _QUARTERS if q * end >= start])
        values = [group.at(places, seconds=seconds) for group in self.groups]
        if len(self.groups[0].environments) > 1:
            values = self._scaled(values)
        indices = [resampled(list(group.environments.values())) for group in self.groups]
        found = {
            group.name: _known(estimates(v, i), group)
            for group, v, i in zip(self.groups, values, indices, strict=True)
        }
        apart = [self._difference(n, values, indices) for n in range(1, len(self.groups))]
        return AtEqual("seconds" if seconds else "steps", shortest, places, found, apart)

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "metric": self.metric,
            "confidence": CONFIDENCE,
            "groups": [
                {
                    "name": group.name,
                    "runs": list(dict.fromkeys(str(curve.run) for curve in group.curves)),
                    "agents": [
                        {"environment": c.environment, "seed": c.seed} for c in group.curves
                    ],
                }
                for group in self.groups
            ],
            "steps": self.at_equal(seconds=False).as_dict(),
            "seconds": self.at_equal(seconds=True).as_dict(),
        }

    def plot(self) -> str:
        """The curves as an SVG file: over steps, and over seconds."""
        panels = []
        for seconds in (False, True):
            start, end, _ = self._span(seconds=seconds)
            at = self.at_equal(seconds=seconds, places=np.linspace(start, end, _PLOTTED))
            lines = [_line(name, at.places, row) for name, row in at.groups.items()]
            what = "seconds of training" if seconds else "steps"
            panels.append(Panel(f"at equal {at.name}", what, self.metric, lines))
        return picture(f"{self.metric}, interquartile mean over seeds [95 %]", panels)

    def _span(self, *, seconds: bool) -> tuple[float, float, str]:
        """Where all agents have values, and the run that ends first.

        Raises:
            UserError: there is no such place.
        """
        curves = [curve for group in self.groups for curve in group.curves]
        reached = [curve.seconds if seconds else curve.steps for curve in curves]
        start, end = max(x[0] for x in reached), min(x[-1] for x in reached)
        shortest = str(curves[int(np.argmin([x[-1] for x in reached]))].run)
        if not start < end:
            unit = "seconds" if seconds else "steps"
            raise UserError(
                f"{shortest} ends before another run has its first {self.metric}: there are no "
                f"equal {unit}"
            )
        return start, end, shortest

    def _scaled(self, values: Sequence[Values]) -> list[Values]:
        """Values of several environments from 0, the least of any agent at the end, to 1."""
        scaled = [np.array(each) for each in values]
        for name in self.groups[0].environments:
            columns = [[c.environment == name for c in group.curves] for group in self.groups]
            last = np.concatenate([v[-1, i] for v, i in zip(values, columns, strict=True)])
            low, room = last.min(), np.ptp(last) or 1.0
            for each, column in zip(scaled, columns, strict=True):
                each[:, column] = (each[:, column] - low) / room
        return scaled

    def _difference(
        self, n: int, values: Sequence[Values], indices: Sequence[Indices]
    ) -> Difference:
        """Group `n` less the first: agents of equal seeds are resampled together."""
        ours, first = self.groups[n], self.groups[0]
        pairs = ours.pairs()
        paired = pairs == first.pairs() and len(set(pairs)) == len(pairs)
        sizes = list(first.environments.values())
        others = indices[n] if paired else resampled(sizes, seed=1)
        found = differences(values[n], values[0], indices[n], others)
        how = None
        if paired:
            games = [(a.games, b.games) for a, b in zip(ours.curves, first.curves, strict=True)]
            same = self.metric.startswith(EVALUATED) and all(a == b for a, b in games)
            how = "seeds and evaluation games" if same else "seeds"
        return Difference(ours.name, how, _known(found, ours, first))


def few_seeds(groups: Sequence[Group]) -> str | None:
    """A warning if a group has so few agents that its interval can't be trusted."""
    least = min(groups, key=lambda group: min(group.environments.values()))
    count = min(least.environments.values())
    if count >= FEW:
        return None
    if count == 1:
        return f"{least.name} has one seed: no interval; train it with --num-seeds, or more --seed"
    return f"{least.name} has {count} seeds: intervals of fewer than {FEW} are too narrow"


def _known(found: list[Estimate], *groups: Group) -> list[Estimate]:
    """The estimates, without intervals if an environment of a group has a single agent."""
    if min(count for group in groups for count in group.environments.values()) > 1:
        return found
    return [Estimate(each.mean, math.nan, math.nan) for each in found]


def _as_dict(value: Estimate) -> dict[str, float | None]:
    known = math.isfinite(value.low)
    return {
        "iqm": value.mean,
        "low": value.low if known else None,
        "high": value.high if known else None,
    }


def _line(name: str, places: Values, row: Sequence[Estimate]) -> Line:
    means, lows, highs = (list(column) for column in zip(*row, strict=True))
    known = math.isfinite(lows[0])
    return Line(name, list(places), means, lows if known else (), highs if known else ())
