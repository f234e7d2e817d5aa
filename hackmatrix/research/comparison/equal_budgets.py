"""Compares groups of agents at equal steps and at equal seconds: a table, JSON and a plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.curves import EVALUATED, Values
from hackmatrix.research.comparison.estimates import differences, estimates, improvement, profile
from hackmatrix.research.comparison.groups import ComparedGroup, Scales
from hackmatrix.research.evaluation.statistics import CONFIDENCE, Estimate
from hackmatrix.research.figures import Picture, abbreviate, colours_of, label, line, panels, svg

_QUARTERS = (0.25, 0.5, 0.75, 1.0)
_PLOTTED = 60  # points of a curve, and thresholds of a profile


@dataclass(frozen=True)
class BudgetDifference:
    """A group's gain over the first one."""

    group: str
    paired: str | None  # what pairs their agents; None if they are independent
    estimates: list[Estimate]
    improvements: list[Estimate]  # probabilities that an agent of it is above one of the first


@dataclass(frozen=True)
class AtEqual:
    """Groups at equal steps, or at equal seconds."""

    name: str  # "steps" or "seconds"
    shortest: str  # the run that ends first
    budgets: Values
    agents: dict[str, Values]  # [places, agents] of each group
    groups: dict[str, list[Estimate]]
    differences: list[BudgetDifference]

    def thresholds(self) -> Values:
        """Scores from the least to the greatest of any agent at the last place."""
        last = np.concatenate([values[-1] for values in self.agents.values()])
        return np.linspace(last.min(), last.max(), _PLOTTED)

    def profiles(self) -> dict[str, list[Estimate]]:
        """The share of each group's agents above each threshold at the last place."""
        return {name: profile(x[-1], self.thresholds()) for name, x in self.agents.items()}

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "at": [float(place) for place in self.budgets],
            "shortest": self.shortest,
            "groups": {
                name: [_as_dict(each, "iqm") for each in row] for name, row in self.groups.items()
            },
            "agents": {name: values.T.tolist() for name, values in self.agents.items()},
            "differences": [
                {
                    "group": each.group,
                    "paired_by": each.paired,
                    "values": [_as_dict(value, "iqm") for value in each.estimates],
                    "improvement": [_as_dict(p, "probability") for p in each.improvements],
                }
                for each in self.differences
            ],
            "profiles": {
                "above": self.thresholds().tolist(),
                "groups": {
                    name: [_as_dict(each, "share") for each in row]
                    for name, row in self.profiles().items()
                },
            },
        }


@dataclass(frozen=True)
class Comparison:
    """Groups of agents, compared by a metric."""

    metric: str
    groups: Sequence[ComparedGroup]  # the first is the reference, see `referred`
    scales: Scales = field(default_factory=dict)

    def __post_init__(self) -> None:
        for seconds in (False, True):
            self._span(seconds=seconds)

    def at_equal(self, *, seconds: bool, budgets: Values | None = None) -> AtEqual:
        """The groups at some places; unless given, at each quarter that all agents have reached."""
        start, end, shortest = self._span(seconds=seconds)
        if budgets is None:
            budgets = np.array([q * end for q in _QUARTERS if q * end >= start])
        values = [self._scores(group, budgets, seconds=seconds) for group in self.groups]
        scores = {
            group.name: estimates(v, list(group.environments.values()))
            for group, v in zip(self.groups, values, strict=True)
        }
        return AtEqual(
            "seconds" if seconds else "steps",
            shortest,
            budgets,
            {group.name: v for group, v in zip(self.groups, values, strict=True)},
            scores,
            [self._difference(n, values) for n in range(1, len(self.groups))],
        )

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "metric": self.metric,
            "confidence": CONFIDENCE,
            "reference": self.groups[0].name,
            "scales": {name: list(scale) for name, scale in self.scales.items()},
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

    def plot(self) -> Picture:
        """The curves over steps and over seconds, each agent's a thin line, and the profiles."""
        figure, all_axes = panels(f"{self.metric}, interquartile mean over seeds [95 %]", 3)
        colours = colours_of(group.name for group in self.groups)
        for axes, seconds in zip(all_axes, (False, True), strict=False):
            start, end, _ = self._span(seconds=seconds)
            at = self.at_equal(seconds=seconds, budgets=np.linspace(start, end, _PLOTTED))
            for name, values in at.agents.items():
                for curve in values.T:
                    line(axes, at.budgets, curve, colour=colours[name], is_thin=True)
            for name, row in at.groups.items():
                _line(axes, at.budgets, row, colours[name], name)
            what = "seconds of training" if seconds else "steps"
            label(axes, f"at equal {at.name}", what, self.metric)
        axes, at = all_axes[-1], self.at_equal(seconds=False)
        for name, row in at.profiles().items():
            _line(axes, at.thresholds(), row, colours[name], name)
        label(axes, "at the last equal step", self.metric, "share above it")
        axes.legend(fontsize=8, frameon=False)
        return svg(figure)

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

    def _scores(self, group: ComparedGroup, budgets: Values, *, seconds: bool) -> Values:
        """The values of a group's agents on the scales of their environments: [places, agents]."""
        values = group.at(budgets, seconds=seconds)
        for agent, curve in enumerate(group.curves):
            if curve.environment in self.scales:
                low, high = self.scales[curve.environment]
                values[:, agent] = (values[:, agent] - low) / (high - low)
        return values

    def _difference(self, n: int, values: Sequence[Values]) -> BudgetDifference:
        """Group `n` less the first: agents of equal seeds are paired."""
        ours, first = self.groups[n], self.groups[0]
        pairs, sizes = ours.pairs(), list(ours.environments.values())
        others = list(first.environments.values())
        paired = pairs == first.pairs() and len(set(pairs)) == len(pairs)
        difference = differences(values[n], values[0], sizes, None if paired else others)
        how = None
        if paired:
            games = [(a.games, b.games) for a, b in zip(ours.curves, first.curves, strict=True)]
            same = self.metric.startswith(EVALUATED) and all(a == b for a, b in games)
            how = "seeds and evaluation games" if same else "seeds"
        return BudgetDifference(
            ours.name, how, difference, improvement(values[n], values[0], sizes, others)
        )


def single_seed(groups: Sequence[ComparedGroup]) -> str | None:
    """A note if a group has a single agent in an environment, and so no interval."""
    for group in groups:
        if min(group.environments.values()) == 1:
            return (
                f"{group.name} has one seed: no interval; train it with --num-seeds, or more --seed"
            )
    return None


def _as_dict(value: Estimate, name: str) -> dict[str, float | None]:
    known = math.isfinite(value.low)
    return {
        name: value.mean,
        "low": value.low if known else None,
        "high": value.high if known else None,
    }


def _line(axes: Any, xs: Values, row: Sequence[Estimate], colour: str, name: str) -> None:
    means, lows, highs = (list(column) for column in zip(*row, strict=True))
    bounds = (lows, highs) if math.isfinite(lows[0]) else None
    line(axes, xs, means, bounds, colour=colour, name=name)


# --- A comparison as text -------------------------------------------------------------------------


def table(comparison: Comparison) -> str:
    """The groups at equal steps and at equal seconds, and their differences from the first."""
    groups = comparison.groups
    lines = [f"{comparison.metric}: interquartile mean over seeds [95 % interval]"]
    for name, (low, high) in comparison.scales.items():
        lines.append(f"{name}: {low:.4g} counts as 0, {high:.4g} as 1")
    for seconds in (False, True):
        lines += ["", *_part(comparison, comparison.at_equal(seconds=seconds))]
    note = single_seed(groups)
    return "\n".join([*lines, *(["", note] if note else [])])


def _part(comparison: Comparison, at: AtEqual) -> list[str]:
    in_seconds = at.name == "seconds"
    places = [_seconds(x) if in_seconds else abbreviate(x) for x in at.budgets]
    rows = [[f"at equal {at.name}", "seeds", *places]]
    for group in comparison.groups:
        shown = [_format(each, "{:.4g}") for each in at.groups[group.name]]
        rows.append([group.name, str(len(group.curves)), *shown])
    first = comparison.groups[0].name
    for estimate in at.differences:
        shown = [_format(value, "{:+.4g}") for value in estimate.estimates]
        how = f"paired by {estimate.paired}" if estimate.paired else "not paired"
        rows.append([f"{estimate.group} less {first}, {how}", "", *shown])
        shown = [_format(value, "{:.2f}") for value in estimate.improvements]
        rows.append([f"probability of {estimate.group} above {first}", "", *shown])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    return [*(line.rstrip() for line in lines), f"as far as the shortest run, {at.shortest}"]


def _format(value: Estimate, form: str) -> str:
    mean = form.format(value.mean)
    if not math.isfinite(value.low):
        return mean
    return f"{mean} [{form.format(value.low)}, {form.format(value.high)}]"


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"
