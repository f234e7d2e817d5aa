"""The group that others are compared with, and the scale of the scores of several environments."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.groups import ComparedGroup


class Scale(NamedTuple):
    """The value of a metric that counts as 0, and the one that counts as 1."""

    low: float
    high: float


Scales = Mapping[str, Scale]  # by environment; empty: values stay as they are


def apply_reference(
    groups: Sequence[ComparedGroup], arguments: Sequence[str]
) -> tuple[list[ComparedGroup], Scales]:
    """The groups, the reference first, and the scales of their environments.

    Scales depend on the reference alone, so a further group moves no score of the others.

    Args:
        groups: as given; the first is the reference unless another one is named.
        arguments: the name of a group, or ENV=LOW,HIGH for each environment; empty for neither.

    Raises:
        UserError: there is no such group or environment, or the values are no scale.
    """
    names = [group.name for group in groups]
    if any(word not in names and "=" in word for word in arguments):
        return list(groups), _parse_scales(arguments, groups[0].environments)
    if len(arguments) > 1 or not set(arguments) <= set(names):
        raise UserError(
            f"--reference {' '.join(arguments)}: is one of the groups {', '.join(names)}, or "
            "ENV=LOW,HIGH for each environment"
        )
    first = next((group for group in groups if group.name in arguments), groups[0])
    ordered = [first, *(group for group in groups if group is not first)]
    return ordered, _scales_of(first) if len(first.environments) > 1 else {}


def _parse_scales(arguments: Sequence[str], environments: Mapping[str, int]) -> Scales:
    scales: dict[str, Scale] = {}
    for word in arguments:
        name, _, values = word.rpartition("=")
        try:
            scale = Scale(*map(float, values.split(",")))
        except (TypeError, ValueError):
            scale = Scale(math.nan, math.nan)
        if not -math.inf < scale.low < scale.high < math.inf:
            raise UserError(f"--reference {word}: must be ENV=LOW,HIGH, two numbers")
        if name not in environments or name in scales:
            raise UserError(
                f"--reference {word}: the groups are of {', '.join(environments)}, each is given "
                "once"
            )
        scales[name] = scale
    if missing := environments.keys() - scales.keys():
        raise UserError(f"--reference: lacks {', '.join(sorted(missing))}")
    return scales


def _scales_of(group: ComparedGroup) -> Scales:
    """For each environment from the least value that an agent of the group ever had to the most."""
    scales = {}
    for name in group.environments:
        curves = [curve.values for curve in group.curves if curve.environment == name]
        low, high = min(map(min, curves)), max(map(max, curves))
        if not low < high:
            raise UserError(
                f"{group.name}: has one value in all of its rows of {name}, which is no scale: "
                f"give --reference another group, or {name}=LOW,HIGH for each environment"
            )
        scales[name] = Scale(float(low), float(high))
    return scales
