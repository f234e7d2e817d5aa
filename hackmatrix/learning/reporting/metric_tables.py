"""Metrics and alarms as Markdown tables: `python -m hackmatrix.learning.reporting.metric_tables`.

The documentation site shows them in `docs/metrics.md`. Imports no JAX.
"""

import sys
from collections.abc import Sequence

from hackmatrix.environments.curriculum.levels import METRICS as OF_CURRICULUM
from hackmatrix.environments.hackmatrix.metric_table import METRICS as OF_HACKMATRIX
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.environments.task_metrics import metrics_of_task
from hackmatrix.learning.reporting.alarms import alarms_of
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS

_ALIKE = {"actions/program/": "{program}", "reward/": "{part}"}  # differ in this name alone


def metric_table(metrics: Sequence[Metric]) -> str:
    """Metrics with their healthy ranges; those that differ in a name alone share a row."""
    rows = dict.fromkeys(map(_row, metrics))
    return "\n".join(["| metric | over | meaning | healthy |", "|---|---|---|---|", *rows])


def alarm_table() -> str:
    """All alarms of a run on HackMatrix."""
    rules = alarms_of((*LEARNER_METRICS, *OF_HACKMATRIX))
    rows = [f"| `{r.name}` | {r.severity.value} | {r.when} | {r.advice} |" for r in rules]
    return "\n".join(["| alarm | severity | when | what to do |", "|---|---|---|---|", *rows])


def _row(metric: Metric) -> str:
    row = f"| `{metric.name}` | {metric.over.value} | {metric.meaning} | {_healthy(metric)} |"
    for prefix, placeholder in _ALIKE.items():
        if metric.name.startswith(prefix):
            row = row.replace(metric.name.removeprefix(prefix), placeholder)
    return row


def _healthy(metric: Metric) -> str:
    if not metric.limits:
        return ""
    mildest = metric.limits[0]
    return f"at least {mildest.below:g}" if mildest.above is None else f"at most {mildest.above:g}"


TABLES = {
    "learner": lambda: metric_table(LEARNER_METRICS),
    "hackmatrix": lambda: metric_table(OF_HACKMATRIX),
    "curriculum": lambda: metric_table(OF_CURRICULUM),
    "tasks": lambda: metric_table(metrics_of_task("{task}")),
    "alarms": alarm_table,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        if name not in TABLES:
            sys.exit(f"{name}: must be one of {', '.join(TABLES)}")
        print(f"{TABLES[name]()}\n")
