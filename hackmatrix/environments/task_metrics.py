"""The metrics of one of several tasks: its return and length, and those of its environment.

All are ratios over the task's own games. Imports no JAX.
"""

import math
from collections.abc import Sequence

from hackmatrix.environments.interface.metric import Metric, Over, Shown

_OF_A_PART = (Over.STEPS, Over.EPISODES, Over.CHANCES)  # can be of one task's games; HIGHEST not


def metrics_of_task(task: str, reward_threshold: float = math.inf) -> tuple[Metric, ...]:
    """The metrics that every task has; the first two are measured, return and length.

    Args:
        task: its name.
        reward_threshold: of its environment, `OptionalMembers.reward_threshold`.
    """
    a_return, a_length = f"sum of the rewards of a game of {task}", f"actions of a game of {task}"
    return (
        Metric(
            f"task/{task}/mean_return",
            Over.CHANCES,
            a_return,
            shown=Shown("RETURN BY TASK", task, ",.2f", in_summary=True),
            judged=True,
            enough=reward_threshold,
        ),
        Metric(f"task/{task}/mean_length", Over.CHANCES, a_length),
        Metric(f"eval/task/{task}/mean_return", Over.EVALUATION, a_return),
        Metric(f"eval/task/{task}/mean_length", Over.EVALUATION, a_length),
    )


def measured_metrics(metrics: Sequence[Metric]) -> list[Metric]:
    """Those of an environment's metrics that are measured and can be of a part of the games."""
    return [metric for metric in metrics if metric.over in _OF_A_PART]


def further_metrics(metrics: Sequence[Metric], task: str) -> list[Metric]:
    """The metrics of a task's environment, as those of the task."""
    evaluated = [metric for metric in metrics if metric.over is Over.EVALUATION]
    return [
        *(m._replace(name=name_in(task, m), over=Over.CHANCES) for m in measured_metrics(metrics)),
        *(m._replace(name=f"eval/task/{task}/{m.name.removeprefix('eval/')}") for m in evaluated),
    ]


def name_in(task: str, metric: Metric) -> str:
    """The task's name of a metric that its environment measures."""
    return f"task/{task}/{metric.name}"
