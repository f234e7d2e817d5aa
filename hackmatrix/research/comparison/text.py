"""A comparison as text."""

import math

from hackmatrix.research.comparison.equal_budgets import AtEqual, Comparison, single_seed
from hackmatrix.research.evaluation.statistics import Estimate
from hackmatrix.research.figures import abbreviate


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
