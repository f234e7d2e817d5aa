"""Networks that answer a mirrored game with the mirrored answer."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members

Array = jax.Array

_Axes = tuple[np.ndarray | None, ...]  # where each index of an array goes; None: it stays


class Symmetry:
    """The weights that an `mlp` shares between the ways in which a game can be mirrored.

    With R reflections, the units of a layer are 2^R groups, which a reflection swaps in pairs, so
    that each unit has a twin in every mirrored game. A network is equivariant where all weights
    between twins are equal (Ravanbakhsh et al. 2017, https://arxiv.org/abs/1702.08389); its params
    are those of an `mlp` like any other. It starts with equal weights, and each gradient is made
    equal, which is that with respect to the weights that are shared. Rounding alone tells twins
    apart later.
    """

    def __init__(self, env: Environment, config: NetworkConfig) -> None:
        """Reads how the games of `env` are mirrored.

        Raises:
            UserError: it does not say, or says something else than `Reflections` does, or the
                width can't be divided among the groups.
        """
        if (reflections := optional_members(env).reflections) is None:
            raise UserError(
                "--symmetric: the environment does not say how it is mirrored (`reflections`); "
                "HackMatrix does with --observation tactical"
            )
        if not all(map(_are_reflections, reflections)):
            raise UserError(
                "--symmetric: the environment's `reflections` must each be its own inverse, and "
                "their order must not matter"
            )
        self._groups = 2 ** len(reflections.actions)
        if config.hidden_dim % self._groups:
            raise UserError(
                f"--symmetric: --hidden-dim must be a multiple of {self._groups}, got "
                f"{config.hidden_dim}"
            )
        self._layers = [
            _layers(features, actions, self._units(number, config.hidden_dim), config.num_layers)
            for number, (features, actions) in enumerate(zip(*reflections, strict=True))
        ]

    def _units(self, reflection: int, width: int) -> np.ndarray:
        """int[width]: the twin of each unit."""
        units = np.arange(width).reshape(self._groups, -1)
        return units[np.arange(self._groups) ^ (1 << reflection)].reshape(-1)

    def initial(self, params: PyTree) -> PyTree:
        """Params of equal weights from random ones, with the same variance."""
        gain = math.sqrt(self._groups)

        def scaled(path: Any, array: Array) -> Array:
            return gain * array if path[-1].key == "kernel" else array

        return jax.tree_util.tree_map_with_path(scaled, self.tied(params))

    def tied(self, params: PyTree) -> PyTree:
        """The nearest params, or gradients, in which the weights of twins are equal.

        They are means over all mirrored networks.
        """
        for layers in self._layers:

            def mean(path: Any, array: Array, layers: dict[str, _Axes] = layers) -> Array:
                axes = layers[path[-2].key][-array.ndim :]
                return (array + _mirrored(array, axes)) / 2

            params = jax.tree_util.tree_map_with_path(mean, params)
        return params


def _are_reflections(ways: np.ndarray) -> bool:
    """Whether permutations, int[R, n], are their own inverses and commute."""
    undone = all(np.array_equal(way[way], np.arange(len(way))) for way in ways)
    return undone and all(np.array_equal(one[other], other[one]) for one in ways for other in ways)


def _layers(
    features: np.ndarray, actions: np.ndarray, units: np.ndarray, num_layers: int
) -> dict[str, _Axes]:
    """The inputs and outputs of each layer, by its name in the params of `mlp.ActorCritic`."""
    trunk = {f"Dense_{number}": (units, units) for number in range(1, num_layers)}
    norms = {f"LayerNorm_{number}": (units,) for number in range(num_layers)}
    heads: dict[str, _Axes] = {
        f"Dense_{num_layers}": (units, actions),
        f"Dense_{num_layers + 1}": (units, None),
    }
    return {"Dense_0": (features, units), **trunk, **norms, **heads}


def _mirrored(array: Array, axes: _Axes) -> Array:
    for axis, indices in enumerate(axes):
        if indices is not None:
            array = jnp.take(array, indices, axis=axis)
    return array
