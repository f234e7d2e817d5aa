"""Metrics summed on the device: for each metric of the table a total and a weight, float32[2].

A metric that nothing measures keeps the weight 0, so one structure serves every environment.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp

from hackmatrix.interface.metric import Metric, Over
from hackmatrix.jaxgame.metric_table import METRICS
from hackmatrix.learner import mesh
from hackmatrix.reporting.metrics import LEARNER_METRICS, measured_on_device
from hackmatrix.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.rules.rewards import REWARD_PARTS

Array = jax.Array
Measures = dict[str, Array]

_ALL = (*LEARNER_METRICS, *METRICS)
_HIGHEST = {metric.name for metric in _ALL if metric.over is Over.HIGHEST}
# What the environment may tell about a finished game, and the metric it goes into.
_OF_EPISODES = {
    "stage": "stats/mean_stage",
    "won": "stats/win_rate",
    "score": "stats/mean_score",
    "programs_owned": "stats/programs_owned",
}


def nothing_measured(metrics: Sequence[Metric] = _ALL) -> Measures:
    """Zeros for every metric that is measured on the device."""
    return {metric.name: jnp.zeros(2) for metric in measured_on_device(metrics)}


def added(sums: Measures, *measures: Measures) -> Measures:
    """`sums` with further measures."""
    result = dict(sums)
    for measured in measures:
        for name, new in measured.items():
            join = jnp.maximum if name in _HIGHEST else jnp.add
            result[name] = join(result[name], new)
    return result


def over_time(measures: Measures) -> Measures:
    """Measures [T, 2] of T steps -> [2]."""
    return {
        name: (jnp.max if name in _HIGHEST else jnp.sum)(steps, axis=0)
        for name, steps in measures.items()
    }


def of_update(values: Mapping[str, Array]) -> Measures:
    """Measures of one update from scalars by name."""
    return {f"train/{name}": _pair(value, 1.0) for name, value in values.items()}


def of_step(
    reward: Array, ended: Array, returns: Array, lengths: Array, info: Mapping[str, Array]
) -> Measures:
    """Measures of one step of N games.

    Args:
        reward: float32[N].
        ended: bool[N], whether the episode ended.
        returns: float32[N], the episode's rewards so far, this step's included.
        lengths: int32[N], the episode's steps so far, this one included.
        info: what the environment tells, by name; see `Environment`.
    """
    games = reward.size
    episodes = jnp.sum(ended)
    finished = {"train/mean_episode_return": returns, "train/mean_episode_length": lengths}
    finished |= {metric: info[name] for name, metric in _OF_EPISODES.items() if name in info}
    measures = {
        name: _pair(jnp.sum(jnp.where(ended, value, 0)), episodes)
        for name, value in finished.items()
    }
    measures["train/mean_reward"] = _pair(jnp.sum(reward), games)
    if "stage" in info:
        highest = jnp.max(jnp.where(ended, info["stage"], 0))
        measures["stats/highest_stage"] = _pair(highest, episodes > 0)
    if "reward_parts" in info:
        totals = jnp.sum(info["reward_parts"], axis=0)
        for part, total in zip(REWARD_PARTS, totals, strict=True):
            measures[f"reward/{part}"] = _pair(total, games)
    return measures


def of_actions(actions: Array, masks: Array, ended: Array) -> Measures:
    """How HackMatrix's actions were used in a rollout of T steps of N games.

    Args:
        actions: int[T, N].
        masks: uint32[T, N], the valid actions as bits, before each step.
        ended: bool[T, N], whether the episode ended with the step.
    """
    every = jnp.arange(NUM_ACTIONS, dtype=actions.dtype)
    counts = jnp.sum(actions.reshape(-1, 1) == every, axis=0)
    measures = {
        "actions/move_frac": jnp.sum(counts[:SIPHON]),
        "actions/siphon_frac": counts[SIPHON],
        "actions/program_frac": jnp.sum(counts[FIRST_PROGRAM:]),
    }
    for name, count in zip(ACTION_NAMES[FIRST_PROGRAM:], counts[FIRST_PROGRAM:], strict=True):
        measures[f"actions/program/{name}"] = count
    result = {name: _pair(count, actions.size) for name, count in measures.items()}

    can_siphon = masks >> SIPHON & 1 == 1
    # Whether the rollout's first step begins a spell is not known, so it does not count.
    first_chance = can_siphon[1:] & ~(can_siphon[:-1] & ~ended[:-1])
    taken = first_chance & (actions[1:] == SIPHON)
    result["stats/siphon_first_chance_frac"] = _pair(jnp.sum(taken), jnp.sum(first_chance))
    return result


def over_devices(measures: Measures) -> Measures:
    """Measures of one device's games -> of all games."""
    return {
        name: (mesh.pmax if name in _HIGHEST else mesh.psum)(values)
        for name, values in measures.items()
    }


def _pair(total: Array, weight: Array | float) -> Array:
    return jnp.stack([jnp.asarray(total, jnp.float32), jnp.asarray(weight, jnp.float32)])
