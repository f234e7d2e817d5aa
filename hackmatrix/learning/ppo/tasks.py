"""Environments of several tasks: which game is of which, and what is averaged for each of them.

Tasks pay in different units, so rewards are scaled and advantages normalised for each task. The
task of N games is `tasks`, float32[N, K]: a one-hot row for each; None where there is one task.
Sums are written out, as a matrix product rounds its factors on some accelerators.
"""

import jax
import jax.numpy as jnp

from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import Environment, optional_members

Array = jax.Array


def number_of_tasks(env: Environment) -> int | None:
    """The number of tasks of an environment; None if it is a single one."""
    names = optional_members(env).tasks
    return None if names is None else len(names)


def tasks_of(env: Environment, numbers: Array) -> Array | None:
    """The tasks of the games with these numbers, int32[N]: the tasks take turns."""
    count = number_of_tasks(env)
    return None if count is None else jax.nn.one_hot(numbers % count, count)


def summed(values: Array, tasks: Array | None) -> Array:
    """Sums over games, [..., N]: of all, [...], or of each task, [..., K]."""
    return (
        jnp.sum(values, axis=-1) if tasks is None else jnp.sum(values[..., None] * tasks, axis=-2)
    )


def of_games(values: Array, tasks: Array | None) -> Array:
    """The value, of float32[K], of each game's task, [..., N]; without tasks the only one, []."""
    return values if tasks is None else jnp.sum(tasks * values, axis=-1)


def normalised(values: Array, tasks: Array | None) -> Array:
    """Shifts and scales to mean 0 and deviation 1, for each task, over the games of all devices.

    Args:
        values: float32[...].
        tasks: float32[..., K], or None.
    """
    if tasks is None:
        centred = values - mesh.pmean(jnp.mean(values))
        return centred / (jnp.sqrt(mesh.pmean(jnp.mean(centred**2))) + 1e-8)
    axes = tuple(range(values.ndim))
    counts = jnp.maximum(mesh.psum(jnp.sum(tasks, axis=axes)), 1.0)

    def means(values: Array) -> Array:
        return mesh.psum(jnp.sum(values[..., None] * tasks, axis=axes)) / counts

    centred = values - of_games(means(values), tasks)
    return centred / (of_games(jnp.sqrt(means(centred**2)), tasks) + 1e-8)
