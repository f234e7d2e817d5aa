"""Groups of agents that differ in their seed alone: what is compared."""

import itertools
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
