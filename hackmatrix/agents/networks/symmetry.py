"""Networks that answer a mirrored game with the mirrored answer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.typing import DTypeLike

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import Sharing
from hackmatrix.agents.networks.sparse import product
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import (
    Environment,
    FeatureIntegers,
    PyTree,
    optional_members,
)

# --- Sums over mirrored games: vectors in the basis of the characters of a group of reflections ---
#
# R reflections that commute make a group of 2^R elements, numbered by the bits of the reflections
# that are done, and of as many characters: the product of the signs that character s has for the
# reflections of element g is (-1)^popcount(s & g).


Array = jax.Array


class _Slices(NamedTuple):
    """Orbits that the same elements leave as they are, one place of each in every slice."""

    elements: tuple[int, ...]  # which of them lead from the first slice to each
    orbits: int  # how many
    characters: frozenset[int]  # those whose sums are not always 0


class Orbits:
    """The orbits of n places, such as features, that reflections move.

    Attributes:
        order: int[n], the places in the order in which `components` takes them.
        sizes: float32[n], the size of the orbit of each place, in this order.
    """

    def __init__(self, ways: np.ndarray) -> None:
        """Finds them.

        Args:
            ways: int[R, n], permutations that are their own inverses and commute.
        """
        moved = _group_elements(ways)
        self._group = len(moved)
        first = np.flatnonzero(moved.min(axis=0) == moved[0])  # one place of each orbit
        leave = moved[:, first] == first
        self._slices, order, sizes = [], [], []
        for kind in np.unique(leave.T, axis=0):
            representatives = first[(kind == leave.T).all(axis=1)]
            stabilizer = np.flatnonzero(kind)
            elements = np.unique((np.arange(self._group)[:, None] ^ stabilizer).min(axis=1))
            characters = (
                s for s in range(self._group) if all(_sign(s, g) > 0 for g in map(int, stabilizer))
            )
            self._slices.append(
                _Slices(tuple(map(int, elements)), len(representatives), frozenset(characters))
            )
            order.append(moved[elements][:, representatives].reshape(-1))
            sizes.append(np.full(order[-1].shape, len(elements), np.float32))
        self.order = np.concatenate(order)
        self.sizes = np.concatenate(sizes)
        self._is_ordered = np.array_equal(self.order, np.arange(len(self.order)))

    def reorder(self, array: Array, axis: int = -1) -> Array:
        """The places along an axis in the order of `order`."""
        return array if self._is_ordered else _permute(array, self.order, axis)

    def components(self, array: Array, axis: int = -1) -> tuple[Array, ...]:
        """For each character s the signed sums over the orbits.

        Args:
            array: [..., n], ordered.
            axis: that of the n places.

        Returns:
            arrays [..., n_s]; the n_s of all characters add up to n.
        """
        parts = list(self._split(array, axis))
        nothing = jax.lax.slice_in_dim(array, 0, 0, axis=axis)

        def sums(character: int) -> Array:
            terms = (
                signed_sum(arrays, slices.elements, character)
                for slices, arrays in parts
                if character in slices.characters
            )
            return jnp.concatenate([*terms] or [nothing], axis=axis)

        return tuple(sums(character) for character in range(self._group))

    def _split(self, array: Array, axis: int) -> Iterator[tuple[_Slices, list[Array]]]:
        counts = [slices.orbits for slices in self._slices for _ in slices.elements]
        arrays = iter(jnp.split(array, np.cumsum(counts)[:-1], axis=axis))
        for slices in self._slices:
            yield slices, [next(arrays) for _ in slices.elements]


def _permute(array: Array, order: np.ndarray, axis: int) -> Array:
    """`jnp.take` whose derivative takes too, where JAX's own adds up, which is slow on CPU."""

    @jax.custom_vjp
    def permute(array: Array) -> Array:
        return jnp.take(array, order, axis=axis)

    def backward(_: None, gradient: Array) -> tuple[Array]:
        return (jnp.take(gradient, np.argsort(order), axis=axis),)

    permute.defvjp(lambda array: (permute(array), None), backward)
    return permute(array)


def signed_sum(arrays: Sequence[Array], elements: Sequence[int], character: int) -> Array:
    """The sum of an array for each element, with the signs of a character."""
    total = arrays[0]  # of the element 0
    for array, element in zip(arrays[1:], elements[1:], strict=True):
        total = total + array if _sign(character, element) > 0 else total - array
    return total


def _sign(character: int, element: int) -> int:
    return 1 - 2 * ((character & element).bit_count() % 2)


def _group_elements(ways: np.ndarray) -> np.ndarray:
    """int[2^R, n]: where each element of the group takes each place from."""
    moved = np.arange(ways.shape[1])[None]
    for way in ways:
        moved = np.concatenate([moved, moved[:, way]])
    return moved


# --- Networks that answer a mirrored game with the mirrored answer --------------------------------


_Axes = tuple[np.ndarray | None, ...]  # where each index of an array goes; None: it stays


class Symmetry:
    """The weights that an `mlp` shares between the ways in which a game can be mirrored.

    With R reflections, the units of a layer are 2^R groups, which a reflection swaps in pairs, so
    that each unit has a twin in every mirrored game. A network is equivariant where all weights
    between twins are equal (Ravanbakhsh et al. 2017, https://arxiv.org/abs/1702.08389); its params
    are those of any `mlp`. The weights of the first group of units are learned, the others follow.

    The trunk's products are taken in the basis of the group's characters, in which an equivariant
    matrix is block diagonal (Cohen and Welling 2016, https://arxiv.org/abs/1612.08498, section 2):
    with two reflections they take a quarter of the multiplications.
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
        self._width = config.hidden_dim
        if config.hidden_dim % self._groups:
            raise UserError(
                f"--symmetric: --hidden-dim must be a multiple of {self._groups}, got "
                f"{config.hidden_dim}"
            )
        units = [self._twins(number) for number in range(len(reflections.actions))]
        self._layers = [
            _layers(*ways, config.num_layers) for ways in zip(*reflections, units, strict=True)
        ]
        self._heads = _heads(config.num_layers)
        self._features = Orbits(reflections.features)
        self._units = Orbits(np.array(units))
        self._first, self._later = (
            _Weights(orbits, self._groups) for orbits in (self._features, self._units)
        )

    def _twins(self, reflection: int) -> np.ndarray:
        """int[width]: the twin of each unit."""
        units = np.arange(self._width).reshape(self._groups, -1)
        return units[np.arange(self._groups) ^ (1 << reflection)].reshape(-1)

    def encode(self, integers: FeatureIntegers) -> Callable[[PyTree], tuple[Array, ...]]:
        """A function from an observation to the sums over its orbits, for each character.

        They are int8 where `integers` says that they fit.
        """
        orbits = self._features
        largest = np.broadcast_to(integers.largest, orbits.order.shape)[orbits.order]
        fits = np.max(largest * orbits.sizes) <= np.iinfo(np.int8).max
        dtype = jnp.int8 if fits else jnp.int16
        return lambda observation: orbits.components(
            orbits.reorder(integers(observation)).astype(dtype)
        )

    def features(self, features: Array) -> "Sums":
        """The input of the first layer, from float32[..., F]."""
        return Sums(self._features.components(self._features.reorder(features)), self._first)

    def encoded_sums(self, parts: tuple[Array, ...], scales: np.ndarray) -> "Sums":
        """The input of the first layer, from what `encode` returns and the scales float32[F]."""
        scaled = replace(self._first, scales=scales[self._features.order])
        return Sums(parts, scaled)

    def hidden_sums(self, hidden: Array) -> "Sums":
        """The input of a later layer, from the outputs of the one before, float32[..., H]."""
        return Sums(self._units.components(hidden), self._later)

    @property
    def sharing(self) -> Sharing:
        """The weights of the first group of units are independent, and so are the heads' biases."""
        return Sharing(self._independent, self._whole, self._copies)

    def _independent(self, params: PyTree) -> PyTree:
        def first(path: Any, array: Array) -> Array:
            axis = self._axis_of_units(path)
            size = self._width // self._groups
            return array if axis is None else jax.lax.slice_in_dim(array, 0, size, axis=axis)

        return jax.tree_util.tree_map_with_path(first, params)

    def _whole(self, weights: PyTree) -> PyTree:
        for layers in self._layers:

            def double(path: Any, array: Array, layers: dict[str, _Axes] = layers) -> Array:
                axis = self._axis_of_units(path)
                axes = list(layers[path[-2].key][-array.ndim :])
                if axis is None:
                    return (array + _mirror(array, axes)) / 2
                axes[axis] = None  # the twins follow
                return jnp.concatenate([array, _mirror(array, axes)], axis=axis)

            weights = jax.tree_util.tree_map_with_path(double, weights)
        return weights

    def _copies(self, weights: PyTree) -> PyTree:
        def copies_of(path: Any, array: Array) -> int:
            del array
            return 1 if self._axis_of_units(path) is None else self._groups

        return jax.tree_util.tree_map_with_path(copies_of, weights)

    def _axis_of_units(self, path: Any) -> int | None:
        """The axis of an array of params that runs over units, each group of them the same."""
        layer, name = (key.key for key in path[-2:])
        if layer not in self._heads:
            return -1
        return 0 if name == "kernel" else None


@dataclass(frozen=True, eq=False)
class _Weights:
    """The weights of a layer of the trunk, as what multiplies sums over mirrored games.

    Only those of the first group of units are read: the others are copies.
    """

    inputs: Orbits
    groups: int
    scales: np.ndarray | None = None  # float32[F], of the inputs in the order of their orbits

    def parts(self, kernel: Array) -> tuple[Array, ...]:
        """For each character what its sums are multiplied by, float32[n_s, H / groups]."""
        scales = 1 / self.inputs.sizes
        if self.scales is not None:
            scales = scales * self.scales
        weights = self.inputs.reorder(kernel[:, : kernel.shape[1] // self.groups], axis=0)
        return self.inputs.components(weights * scales[:, None], axis=0)


class Sums(struct.PyTreeNode):
    """The inputs of a layer of the trunk: for each character sums over mirrored games."""

    parts: tuple[Array, ...]  # [..., n_s] each
    weights: _Weights = struct.field(pytree_node=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the inputs, [..., F]."""
        return *self.parts[0].shape[:-1], len(self.weights.inputs.order)

    def times(self, kernel: Array, dtype: DTypeLike) -> Array:
        """The product of the inputs and a kernel float32[F, H]: float32[..., H]."""
        products = [
            product(part.astype(jnp.float32), weights, dtype)
            for part, weights in zip(self.parts, self.weights.parts(kernel), strict=True)
        ]
        characters = range(self.weights.groups)
        return jnp.concatenate(
            [signed_sum(products, characters, group) for group in characters], axis=-1
        )


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
    logits, value = _heads(num_layers)
    return {
        "Dense_0": (features, units),
        **trunk,
        **norms,
        logits: (units, actions),
        value: (units, None),
    }


def _heads(num_layers: int) -> tuple[str, str]:
    """The names of the layers for logits and value."""
    return f"Dense_{num_layers}", f"Dense_{num_layers + 1}"


def _mirror(array: Array, axes: Sequence[np.ndarray | None]) -> Array:
    for axis, indices in enumerate(axes):
        if indices is not None:
            array = jnp.take(array, indices, axis=axis)
    return array
