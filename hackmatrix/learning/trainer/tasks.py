"""Environments of several tasks: which game is of which, and what is averaged for each of them.

Tasks pay in different units, so rewards are scaled and advantages normalised for each task. The
task of N games is `tasks`, float32[N, K]: a one-hot row for each; None where there is one task.
Sums are written out, as a matrix product rounds its factors on some accelerators.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

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
