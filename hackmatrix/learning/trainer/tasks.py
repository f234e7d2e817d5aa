"""Environments of several tasks: which game is of which, and what is averaged for each of them.

Tasks pay in different units, so rewards are scaled and advantages normalised for each task. The
task of N games is `tasks`, float32[N, K]: a one-hot row for each; None where there is one task.
Sums are written out, as a matrix product rounds its factors on some accelerators.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import Environment, optional_members

Array = jax.Array


def number_of_tasks(env: Environment) -> int | None:
    """The number of tasks of an environment; None if it is a single one."""
    names = optional_members(env).tasks
    return None if names is None else len(names)


def tasks_of(env: Environment, indices: Array) -> Array | None:
    """The tasks of the games with these indices, int32[N]: the tasks take turns."""
    count = number_of_tasks(env)
    return None if count is None else jax.nn.one_hot(indices % count, count)


def sum_over_games(values: Array, tasks: Array | None) -> Array:
    """Sums over games, [..., N]: of all, [...], or of each task, [..., K]."""
    return (
        jnp.sum(values, axis=-1) if tasks is None else jnp.sum(values[..., None] * tasks, axis=-2)
    )


def of_games(values: Array, tasks: Array | None) -> Array:
    """The value, of float32[K], of each game's task, [..., N]; without tasks the only one, []."""
    return values if tasks is None else jnp.sum(tasks * values, axis=-1)


class Spread(NamedTuple):
    """Mean and deviation of some values of all devices, float32[...] or of each task, [..., K]."""

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, values: Array, tasks: Array | None) -> "Spread":
        """Those of the last axis of float32[..., B], with the tasks float32[..., B, K] or None."""
        if tasks is None:
            mean = mesh.pmean(jnp.mean(values, axis=-1))
            centred = values - mean[..., None]
            return cls(mean, jnp.sqrt(mesh.pmean(jnp.mean(centred**2, axis=-1))))
        counts = jnp.maximum(mesh.psum(jnp.sum(tasks, axis=-2)), 1.0)
        mean = mesh.psum(sum_over_games(values, tasks)) / counts
        centred = values - of_games(mean[..., None, :], tasks)
        return cls(mean, jnp.sqrt(mesh.psum(sum_over_games(centred**2, tasks)) / counts))

    def normalised(self, values: Array, tasks: Array | None) -> Array:
        """Values float32[...] with mean 0 and deviation 1, if these are theirs; [K] for tasks."""
        centred = values - of_games(self.mean, tasks)
        return centred / (of_games(self.deviation, tasks) + 1e-8)


# --- Scales rewards by the size of returns: one learning rate suits small and large rewards -------


class RewardScale(struct.PyTreeNode):
    """Running root mean square of the discounted return since the episode's start, over all steps.

    As in Engstrom et al. 2020 (https://arxiv.org/abs/2005.12729), but the deviation is measured
    from zero, not from the mean: rewards are divided, never shifted, so it is the size of the
    returns that has to become about 1. (A game that always pays the same has the standard deviation
    0.) An environment with K tasks has a scale for each.
    """

    mean_square: Array  # float32[] or float32[K]
    count: Array  # likewise, steps seen

    @classmethod
    def create(cls, tasks: int | None = None) -> "RewardScale":
        """The scale before any step: rewards are divided by 1."""
        shape = () if tasks is None else (tasks,)
        return cls(mean_square=jnp.zeros(shape), count=jnp.zeros(shape))

    def updated(self, sum_of_squares: Array, count: int | Array) -> "RewardScale":
        """The scale after `count` more steps with this sum of squared discounted returns."""
        total = self.count + count
        gain = (sum_of_squares / count - self.mean_square) * (count / total)
        return RewardScale(mean_square=self.mean_square + gain, count=total)

    @property
    def deviation(self) -> Array:
        """The divisor of rewards, float32[] or [K]; 1 as long as all of them were 0."""
        return jnp.where(self.mean_square == 0, 1.0, jnp.sqrt(self.mean_square))
