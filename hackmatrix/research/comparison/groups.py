"""Groups of agents that differ in their seed alone, and the group that others are compared with."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import LOGGING, OPTIONS
from hackmatrix.research.comparison.curves import (
    ComparedRun,
    LearningCurve,
    Values,
    curves_of,
    read_run,
    settings_key,
)

_MOST_NAMED = 3  # settings in the name of a group
_ABOUT_DEVICES = (
    *("device", "num_devices", "kernels", "on_unhealthy"),
    *("tpu", "tpu_cores", "distributed"),
)
# What may differ within a group.
_LEFT_OUT = frozenset(
    {
        "seed",
        "num_seeds",
        *_ABOUT_DEVICES,
        *(name for name, option in OPTIONS.items() if option.section == LOGGING),
    }
)


class ComparedGroup(NamedTuple):
    """Some agents under one name, sorted by environment and seed."""

    name: str
    curves: tuple[LearningCurve, ...]

    @property
    def environments(self) -> dict[str, int]:
        """The environments, with the number of agents of each: the strata."""
        names = [curve.environment for curve in self.curves]
        return {name: names.count(name) for name in names}

    def pairs(self) -> list[tuple[str, int]]:
        """Environment and seed of each agent."""
        return [(curve.environment, curve.seed) for curve in self.curves]

    def at(self, positions: Values, *, seconds: bool) -> Values:
        """The values at some steps or seconds: [places, agents]."""
        return np.stack([curve.at(positions, seconds=seconds) for curve in self.curves], axis=1)


def read_groups(arguments: Sequence[str]) -> tuple[list[ComparedRun], dict[str, list[ComparedRun]]]:
    """Reads the runs of a command line.

    Args:
        arguments: folders of runs, or all of the form NAME=RUN,RUN,...

    Returns:
        All runs, and those of each name; no names if the runs are to be grouped by their settings.

    Raises:
        UserError: a run can't be read, some words have a name and others not, or a run or name is
            given twice.
    """
    named: dict[str, list[ComparedRun]] = {}
    alone: list[ComparedRun] = []
    for word in arguments:
        name, sign, listed = word.partition("=")
        if Path(word).exists() or not sign:
            alone.append(read_run(Path(word)))
        elif not name or not all(listed.split(",")) or name in named:
            raise UserError(f"{word}: a group is given once, as NAME=RUN,RUN")
        else:
            named[name] = [read_run(Path(run)) for run in listed.split(",")]
    if named and alone:
        raise UserError(f"{alone[0].path}: give all runs as NAME=RUN,RUN or none")
    runs = alone or [run for group in named.values() for run in group]
    paths = [run.path.resolve() for run in runs]
    for run in runs:
        if paths.count(run.path.resolve()) > 1:
            raise UserError(f"{run.path}: is given twice")
    return runs, named


def groups_of(
    runs: Sequence[ComparedRun], named: Mapping[str, Sequence[ComparedRun]], metric: str
) -> list[ComparedGroup]:
    """The groups, in the order in which their first runs were given.

    Raises:
        UserError: a run lacks the metric or has one value of it, groups are not of the same
            environments, or two runs with the same settings have the same seed.
    """
    parts = named or _by_settings(runs)
    groups = []
    for name, members in parts.items():
        curves = [curve for run in members for curve in curves_of(run, metric)]
        for curve in curves:
            if len(curve.values) < 2:
                raise UserError(f"{curve.run}: seed {curve.seed} has only one value of {metric}")
        curves.sort(key=lambda curve: (curve.environment, curve.seed))
        if not named:
            _check_seeds(curves)
        groups.append(ComparedGroup(name, tuple(curves)))
    first = groups[0]
    for group in groups:
        if group.environments.keys() != first.environments.keys():
            raise UserError(
                f"{group.name} is of {', '.join(group.environments)}, {first.name} of "
                f"{', '.join(first.environments)}: groups of several environments are given as "
                "NAME=RUN,RUN, each with the same environments"
            )
    return groups


def _check_seeds(curves: Sequence[LearningCurve]) -> None:
    """Raises `UserError` if a seed would count twice; the curves are sorted by it."""
    for one, other in itertools.pairwise(curves):
        if one.seed == other.seed:
            raise UserError(
                f"{one.run} and {other.run}: have the same settings and the seed {one.seed}, so "
                "they are one training twice; if they are not, name the groups, as NAME=RUN,RUN"
            )


def _by_settings(runs: Sequence[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """Runs with equal settings together, named by what sets them apart."""
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(settings_key(run, _LEFT_OUT), []).append(run)
    firsts = [members[0] for members in groups.values()]
    apart = [
        name
        for name in OPTIONS
        if name not in _LEFT_OUT and len({str(run.settings.get(name)) for run in firsts}) > 1
    ]
    if not 1 <= len(apart) <= _MOST_NAMED:
        return {_name_of_members(members): members for members in groups.values()}
    return {
        ", ".join(f"{name} {members[0].settings.get(name)}" for name in apart): members
        for members in groups.values()
    }


def _name_of_members(members: Sequence[ComparedRun]) -> str:
    more = f" and {len(members) - 1} more" if len(members) > 1 else ""
    return members[0].path.name + more


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
