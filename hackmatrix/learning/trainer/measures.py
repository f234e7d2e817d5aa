"""Metrics accumulated on the device: a total and a weight for each metric, float32[2].

A metric that nothing measures keeps the weight 0. Those of all metrics are the rows of one array,
as each array of a loop is a kernel to compile and to run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import (
    Environment,
    StepRecord,
    optional_members,
)
from hackmatrix.environments.interface.metric import Metric, Over
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS, device_metrics
from hackmatrix.learning.trainer.algorithm import Algorithm

Array = jax.Array
Measures = dict[str, Any]  # float32[2] by name, of some metrics


def metrics_of(env: Environment, algorithm: Algorithm) -> tuple[Metric, ...]:
    """The metrics of a run: the learner's that the algorithm measures, then the environment's."""
    measured = {"train/reward_scale", *(f"train/{name}" for name in algorithm.SCALARS)}
    members = optional_members(env)
    learners = (
        metric._replace(enough=members.reward_threshold) if metric.judged else metric
        for metric in LEARNER_METRICS
        if metric.over is not Over.UPDATES or metric.name in measured
    )
    return (*learners, *algorithm.METRICS, *members.metrics)


def zero_sums(metrics: Sequence[Metric]) -> Array:
    """float32[M, 2]: totals and weights of 0 for the M metrics that are measured on the device."""
    return jnp.zeros((len(device_metrics(metrics)), 2))


def rows(measures: Mapping[str, Any], metrics: Sequence[Metric]) -> Array:
    """float32[M, 2]: the measures by the order of the metrics."""
    nothing = jnp.zeros(2)
    return jnp.stack([measures.get(m.name, nothing) for m in device_metrics(metrics)])


def by_name(rows: Any, metrics: Sequence[Metric]) -> Measures:
    """The measures of rows [..., M, 2]."""
    return {m.name: rows[..., i, :] for i, m in enumerate(device_metrics(metrics))}


def accumulate(sums: Array, rows: Array, metrics: Sequence[Metric]) -> Array:
    """`sums` with the measures of further steps added."""
    return jnp.where(_highest(metrics), jnp.maximum(sums, rows), sums + rows)


def over_time(steps: Array, metrics: Sequence[Metric]) -> Array:
    """Reduces the measures of T steps, [T, M, 2], to [M, 2]."""
    return jnp.where(_highest(metrics), jnp.max(steps, axis=0), jnp.sum(steps, axis=0))


def over_devices(rows: Array, metrics: Sequence[Metric]) -> Array:
    """Reduces the measures over all devices; call inside `on_devices`."""
    highest = _highest(metrics)
    reduced: Array = jnp.where(highest, mesh.pmax(rows), mesh.psum(rows))
    return reduced


def of_update(values: Mapping[str, Array]) -> Measures:
    """Measures with weight 1 from the scalars of one update, by name."""
    return {f"train/{name}": jnp.stack([value, jnp.ones(())]) for name, value in values.items()}


def of_step(env: Environment, step: StepRecord, returns: Array, lengths: Array) -> Measures:
    """Measures of one step of N games: episode returns and lengths, and the environment's metrics.

    Args:
        env: the environment.
        step: record of the step; its arrays have the leading axis N.
        returns: float32[N], sum of the episode's rewards up to and including this step.
        lengths: int32[N], number of the episode's steps up to and including this one.
    """
    values: dict[Over, dict[str, Any]] = {over: {} for over in Over}
    values[Over.STEPS] = {"train/mean_reward": step.reward}
    values[Over.EPISODES] = {
        "train/mean_episode_return": returns,
        "train/mean_episode_length": lengths,
    }
    members = optional_members(env)
    if members.measure is not None:
        measured = jax.vmap(members.measure)(step)
        for metric in members.metrics:
            if metric.name in measured:
                values[metric.over][metric.name] = measured[metric.name]
    ended = step.ended[:, None]
    episodes = jnp.sum(step.ended, dtype=jnp.float32)

    def reduce_all(over: Over, weight: Any, total: Any) -> Measures:
        """Reduces all metrics of one kind at once: fewer reductions are faster."""
        if not values[over]:
            return {}
        totals = total(jnp.stack([x.astype(jnp.float32) for x in values[over].values()], axis=1))
        pairs = jnp.stack([totals, jnp.broadcast_to(weight, totals.shape)], axis=1)
        return {name: pairs[i] for i, name in enumerate(values[over])}

    measures = reduce_all(Over.STEPS, float(step.reward.size), lambda x: jnp.sum(x, axis=0))
    measures |= reduce_all(
        Over.EPISODES, episodes, lambda x: jnp.sum(jnp.where(ended, x, 0.0), axis=0)
    )
    measures |= reduce_all(
        Over.HIGHEST, episodes > 0, lambda x: jnp.max(jnp.where(ended, x, 0.0), axis=0)
    )
    for name, (count, chances) in values[Over.CHANCES].items():
        measures[name] = jnp.stack([jnp.sum(x, dtype=jnp.float32) for x in (count, chances)])
    return measures


def _highest(metrics: Sequence[Metric]) -> np.ndarray:
    """bool[M, 1]: the metrics of which the highest is kept, not the sum."""
    kinds = [metric.over is Over.HIGHEST for metric in device_metrics(metrics)]
    return np.array(kinds).reshape(-1, 1)
