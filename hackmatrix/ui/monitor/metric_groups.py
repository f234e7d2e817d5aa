"""The groups, labels and healthy ranges of metrics."""

import math
from collections.abc import Iterable, Mapping

from hackmatrix.environments.hackmatrix.metric_table import METRICS
from hackmatrix.environments.interface.metric import Metric, Over, Severity
from hackmatrix.learning.reporting.metrics import HIGH, LEARNER_METRICS, LOW

_METRICS_BY_NAME = {metric.name: metric for metric in (*LEARNER_METRICS, *METRICS)}
_POSITION = {name: position for position, name in enumerate(_METRICS_BY_NAME)}

# By the part of a name before its last slash. What is not here follows under that part.
_GROUPS = {
    "train": "Learning",
    "stats": "Games",
    "eval": "Evaluation",
    "reward": "Reward per action",
    "actions": "Actions",
    "actions/program": "Programs",
}


def metric_of(name: str) -> Metric:
    """The metric of this name; one that an environment of the user's has is made from its name."""
    return _METRICS_BY_NAME.get(name) or Metric(name, Over.STEPS, name)


def group_of(name: str) -> str:
    """The title of the group that a metric belongs to."""
    folder = name.rpartition("/")[0]
    return _GROUPS.get(folder, folder or "Other")


def label_of(metric: Metric) -> str:
    """A metric's name within its group: the console's, else made from its full name."""
    if metric.shown is None:
        return metric.name.rpartition("/")[2].removeprefix("mean_").replace("_", " ")
    return metric.shown.label.replace("- of random", "rel. entropy")


def in_groups(names: Iterable[str]) -> dict[str, list[Metric]]:
    """The metrics of these names by group, groups and metrics in the order of their tables."""
    order = list(_GROUPS.values())
    metrics = [metric_of(name) for name in set(names) if not name.startswith((LOW, HIGH))]
    metrics.sort(key=_sort_key)
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(group_of(metric.name), []).append(metric)
    known = [title for title in order if title in groups]
    return {title: groups[title] for title in [*known, *sorted(groups.keys() - set(known))]}


def _sort_key(metric: Metric) -> tuple[bool, int, str]:
    """What the training loop measures of itself, such as its speed, follows the rest."""
    return metric.over is Over.LOOP, _POSITION.get(metric.name, len(_METRICS_BY_NAME)), metric.name


def is_fraction(metric: Metric) -> bool:
    """Whether a metric is shown in percent."""
    if metric.shown is not None:
        return metric.shown.form.endswith("%")
    return metric.name.endswith(("_rate", "_frac"))


def health_of(metric: Metric, value: float) -> Severity | None:
    """Distance of a value from its healthy range; None if it is inside."""
    if not math.isfinite(value):
        return Severity.CRITICAL
    crossed = [limit.severity for limit in metric.limits if limit.is_crossed(value)]
    return crossed[-1] if crossed else None


def worst(severities: Iterable[Severity | None]) -> Severity | None:
    """The worst of several; None if all is well."""
    found = set(severities)
    return next((each for each in reversed(Severity) if each in found), None)


def in_words(metric: Metric, value: float) -> str:
    """A value as it is shown."""
    if not math.isfinite(value):
        return "NaN"
    form = ".1%" if is_fraction(metric) else ".4g"
    return format(value, metric.shown.form if metric.shown is not None else form)


def metric_of_alarm(alarm: str) -> str | None:
    """The metric whose limit raises an alarm; None for other alarms."""
    return _LIMITED.get(alarm)


_LIMITED: Mapping[str, str] = {
    limit.alarm: metric.name for metric in _METRICS_BY_NAME.values() for limit in metric.limits
}
