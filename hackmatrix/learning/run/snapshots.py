"""Converts the trainer's state to the named arrays of a checkpoint, and back."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.learning.trainer.trainer import TrainState
from hackmatrix.runs.arrays import Arrays

# Arrays that older checkpoints may lack: they start at zero.
_MAY_BE_MISSING = ("sums.", "games.previous_mask")


def arrays_of(state: TrainState) -> Arrays:
    """Copies of all arrays of a state, named by the path of their fields joined by dots.

    They are copied because a CPU array may share its memory with NumPy's, and the next call reuses
    it.
    """
    return {name: np.array(leaf) for name, leaf in named_leaves(state)}


def state_of(shape: TrainState, arrays: Arrays, path: Path) -> TrainState:
    """Rebuilds a state of NumPy arrays from the result of `arrays_of`.

    Sums that older versions did not have start at zero.

    Args:
        shape: shapes and dtypes of the state.
        arrays: arrays by name.
        path: the checkpoint's path, for error messages.

    Raises:
        UserError: an array is missing, or has another shape or dtype.
    """
    leaves = []
    for name, wanted in named_leaves(shape):
        array = arrays.get(name)
        if array is None and name.startswith(_MAY_BE_MISSING):
            array = np.zeros(wanted.shape, wanted.dtype)
        if array is None:
            raise UserError(f"{path}: holds no {name}; another version of hackmatrix wrote it")
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise UserError(
                f"{path}: {name} is {_text(array)}, this configuration wants {_text(wanted)}"
            )
        leaves.append(array)
    return jax.tree.unflatten(jax.tree.structure(shape), leaves)


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a pytree, each with the path of its fields joined by dots.

    The fields of an algorithm's state stand beside those of the trainer's; one field is stored
    under its old name.
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    names = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves)
    return [(_stored_name(name), leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]


def _stored_name(name: str) -> str:
    return name.removeprefix("learner.").replace("games.information.", "games.known.")


def _text(array: Any) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"
