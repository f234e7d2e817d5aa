"""Finds the first NaN or infinity of a run: in which update, optimizer step and tensor.

Tensors are searched in the order in which they are computed, so the first one found is where the
trouble begins: params before the update, the rollout, then each step of the optimizer (losses,
gradients, params).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.devices import mesh
from hackmatrix.learning.trainer.algorithm import Algorithm
from hackmatrix.learning.trainer.rollout import Rollout

Array = jax.Array
Tensors = dict[str, Array]

NONE = np.int32(-1)


_OF_ROLLOUT: dict[str, Callable[[Rollout], Array]] = {
    "values": lambda rollout: rollout.steps.value,
    "rewards": lambda rollout: rollout.steps.reward,
    "last values": lambda rollout: rollout.last_value,
}


class Anomaly(NamedTuple):
    """Where the first number that is not finite was found."""

    update: int  # counted from 1
    step: int | None  # of the optimizer, counted from 1; None: before the first one
    tensor: str


def no_anomaly() -> Array:
    """int32[3] (update, optimizer step, tensor number), all -1: no anomaly so far."""
    return jnp.full(3, NONE)


def tensors_before_learning(params: Any, rollout: Rollout) -> Tensors:
    """The tensors, by name, that are searched before the first step of the optimizer."""
    of_rollout = {name: of(rollout) for name, of in _OF_ROLLOUT.items()} | rollout.steps.stored
    names = {f"rollout, {name}": tensor for name, tensor in of_rollout.items()}
    return _named("params before the update", params) | names


def tensors_of_step(
    scalars: Mapping[str, Any], grads: Any, params: Any, losses: Sequence[str]
) -> Tensors:
    """The tensors, by name, that are searched after each step of the optimizer."""
    loss_scalars = {name: scalars[name] for name in losses}
    return loss_scalars | _named("gradient", grads) | _named("params after the step", params)


def first_of(tensors: Tensors) -> Array:
    """int32[], index in the dictionary of the first tensor with NaN or infinity; -1: none."""
    bad = jnp.stack([~jnp.all(jnp.isfinite(tensor)) for tensor in tensors.values()])
    bad = mesh.pmax(bad.astype(jnp.int32)) > 0
    return jnp.where(jnp.any(bad), jnp.argmax(bad), NONE).astype(jnp.int32)


def earliest(so_far: Array, update: Array, before: Array, steps: Array) -> Array:
    """The first anomaly, int32[3]: `so_far` if an earlier update had one, else that of this update.

    Args:
        so_far: int32[3], see `no_anomaly`.
        update: int32[], counted from 0.
        before: int32[], `first_of` the tensors before learning.
        steps: int32[S], `first_of` the tensors of each step of the optimizer.
    """
    tensors = jnp.concatenate([before[None], steps])
    first = jnp.argmax(tensors != NONE)
    now = jnp.stack([update, first.astype(jnp.int32) - 1, tensors[first]])
    return jnp.where((so_far[0] == NONE) & jnp.any(tensors != NONE), now, so_far)


def read(so_far: Any, params: Any, algorithm: Algorithm) -> Anomaly | None:
    """Decodes the int32[3] of `earliest`; the structure of `params` gives the tensors' names."""
    update, step, tensor = (int(value) for value in so_far)
    if update == NONE:
        return None
    if step == NONE:
        before = [*_named("params before the update", params)]
        before += [f"rollout, {name}" for name in (*_OF_ROLLOUT, *algorithm.STORED)]
        return Anomaly(update + 1, None, before[tensor])
    losses = algorithm.LOSSES
    of_step = [*tensors_of_step(dict.fromkeys(losses), params, params, losses)]
    return Anomaly(update + 1, step + 1, of_step[tensor])


def _named(prefix: str, tree: Any) -> Tensors:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        f"{prefix}, {jax.tree_util.keystr(path, simple=True, separator='.')}": leaf
        for path, leaf in leaves
    }
