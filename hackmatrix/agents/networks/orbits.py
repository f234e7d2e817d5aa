"""Sums over mirrored games: vectors in the basis of the characters of a group of reflections.

R reflections that commute make a group of 2^R elements, numbered by the bits of the reflections
that are done, and of as many characters: the product of the signs that character s has for the
reflections of element g is (-1)^popcount(s & g).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
