"""A comparison as text."""

import math

from hackmatrix.core.charts.axis import abbreviated
from hackmatrix.research.comparison.equal_budgets import AtEqual, Comparison, few_seeds
from hackmatrix.research.evaluation.statistics import Estimate


def table(comparison: Comparison) -> str:
    """The groups at equal steps and at equal seconds, and their differences from the first."""
    groups = comparison.groups
    lines = [f"{comparison.metric}: interquartile mean over seeds [95 % bootstrap interval]"]
    if len(groups[0].environments) > 1:
        lines.append(f"of {', '.join(groups[0].environments)}, each from 0 (least) to 1 (most)")
    for seconds in (False, True):
        lines += ["", *_part(comparison, comparison.at_equal(seconds=seconds))]
    warning = few_seeds(groups)
    return "\n".join([*lines, *(["", warning] if warning else [])])


def _part(comparison: Comparison, at: AtEqual) -> list[str]:
    in_seconds = at.name == "seconds"
    places = [_seconds(x) if in_seconds else abbreviated(x) for x in at.places]
    rows = [[f"at equal {at.name}", "seeds", *places]]
    for group in comparison.groups:
        shown = [_shown(each, "{:.4g}") for each in at.groups[group.name]]
        rows.append([group.name, str(len(group.curves)), *shown])
    first = comparison.groups[0].name
    for each in at.differences:
        shown = [_shown(value, "{:+.4g}") for value in each.estimates]
        how = f"paired by {each.paired}" if each.paired else "not paired"
        rows.append([f"{each.group} less {first}, {how}", "", *shown])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    return [*(line.rstrip() for line in lines), f"as far as the shortest run, {at.shortest}"]


def _shown(value: Estimate, form: str) -> str:
    mean = form.format(value.mean)
    if not math.isfinite(value.low):
        return mean
    return f"{mean} [{form.format(value.low)}, {form.format(value.high)}]"


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"
