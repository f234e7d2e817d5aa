"""Exact products of mostly empty feature vectors with a matrix, as sums of precomputed rows.

A feature vector is given as a dense part and the indices of some rows of a constant table. Its
product with a matrix W is the dense part's product plus a sum of rows of `table @ W`. On CPU that
takes a fraction of the whole product's time; where matrix products are cheap it gains nothing.

Each batch sums as many rows as its fullest vector has, a number known only at run time.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax
from jax.typing import DTypeLike

from hackmatrix.environments.interface.environment import FeatureRows

Array = jax.Array

_WORD_BITS = 32
_AT_ONCE = 4  # rows added in one pass over the sums, which every pass reads and writes


class SparseFeatures(struct.PyTreeNode):
    """A batch of B feature vectors, each a dense part and row indices."""

    dense: Array  # float32[B, D]
    rows: Array  # int32[P', B], P' >= P; 0, the empty row, fills up vectors of few rows
    count: Array  # int32[], largest number of rows in a vector: later entries are 0
    table: FeatureRows = struct.field(pytree_node=False)

    @classmethod
    def create(cls, dense: Array, rows: Array, table: FeatureRows) -> "SparseFeatures":
        """Makes a batch from dense parts float32[B, D] and rows int32[B, P], zeros anywhere."""
        compacted, count = _compact(rows)
        return cls(dense=dense, rows=compacted, count=count, table=table)

    @property
    def shape(self) -> tuple[int, int]:
        """(B, F), the shape of the full feature vectors."""
        return self.dense.shape[0], self.table.size

    def times(self, kernel: Array, dtype: DTypeLike) -> Array:
        """The full vectors times a kernel float32[F, H]: float32[B, H].

        Only the dense part's product uses `dtype`: sums of rows would not be faster in lower
        precision.
        """
        table = self.table
        rows = jnp.zeros((table.columns.shape[0], kernel.shape[1]))
        for column, weight in zip(table.columns.T, table.weights.T, strict=True):
            rows += kernel[column] * weight[:, None]
        dense = product(self.dense, kernel[table.dense_columns], dtype)
        return _with_rows(dense, rows, self.rows, self.count)


def _compact(rows: Array) -> tuple[Array, Array]:
    """int32[B, P] -> int32[P', B] with zeros last, and the largest count of nonzeros in a vector.

    P' is P rounded up to a multiple of the rows that `_with_rows` adds at once. Each pass of the
    loop takes the lowest set bit of each vector's bitmap of nonzero entries.
    """
    B, P = rows.shape
    num_words = -(-P // _WORD_BITS)
    occupied = jnp.pad(rows > 0, ((0, 0), (0, num_words * _WORD_BITS - P)))
    bits = occupied.reshape(B, num_words, _WORD_BITS).astype(jnp.uint32)
    bitmap = jnp.sum(bits << np.arange(_WORD_BITS, dtype=np.uint32), axis=2, dtype=jnp.uint32).T
    per_vector = jnp.sum(lax.population_count(bitmap), axis=0)
    count = jnp.max(per_vector).astype(jnp.int32)

    def take(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        bitmap, result = carry
        lowest = jnp.zeros(B, jnp.int32)
        empty = jnp.ones(B, bool)  # the words so far
        left = []
        for number, word in enumerate(bitmap):
            here = empty & (word != 0)
            below = lax.population_count((word & -word) - 1).astype(jnp.int32)
            lowest = jnp.where(here, number * _WORD_BITS + below, lowest)
            left.append(jnp.where(here, word & (word - 1), word))
            empty &= word == 0
        row = jnp.take_along_axis(rows, lowest[:, None], axis=1, mode="clip")[:, 0]
        row = jnp.where(empty, 0, row)
        return jnp.stack(left), lax.dynamic_update_index_in_dim(result, row, i, axis=0)

    result = jnp.zeros((-(-P // _AT_ONCE) * _AT_ONCE, B), jnp.int32)
    _, compacted = lax.fori_loop(0, count, take, (bitmap, result))
    return compacted, count


@jax.custom_vjp
def _with_rows(start: Array, table: Array, rows: Array, count: Array) -> Array:
    """`start` float32[B, H] plus, for each vector, the sum of its rows of `table` float32[R, H]."""

    def add(i: Array, sums: Array) -> Array:
        for k in range(_AT_ONCE):
            numbers = lax.dynamic_index_in_dim(rows, i * _AT_ONCE + k, keepdims=False)
            sums += jnp.take(table, numbers, axis=0, mode="clip")
        return sums

    return lax.fori_loop(0, (count + _AT_ONCE - 1) // _AT_ONCE, add, start)


def _forward(
    start: Array, table: Array, rows: Array, count: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    return _with_rows(start, table, rows, count), (table, rows, count)


def _backward(
    saved: tuple[Array, Array, Array], gradient: Array
) -> tuple[Array, Array, None, None]:
    table, rows, count = saved
    nowhere = table.shape[0]  # the gradient of the empty row is never used

    def add(i: Array, sums: Array) -> Array:
        numbers = lax.dynamic_index_in_dim(rows, i, keepdims=False)
        numbers = jnp.where(numbers > 0, numbers, nowhere)
        return sums.at[numbers].add(gradient, mode="drop")

    return gradient, lax.fori_loop(0, count, add, jnp.zeros_like(table)), None, None


_with_rows.defvjp(_forward, _backward)


# --- Matrix products with inputs in a given precision ---------------------------------------------


def product(features: Array, kernel: Array, dtype: DTypeLike) -> Array:
    """float32[..., F] @ float32[F, H] -> float32[..., H], with inputs cast to `dtype`."""
    if jnp.dtype(dtype) == jnp.float32:
        return features @ kernel
    return _rounded_product(features, kernel, jnp.dtype(dtype))


def _rounded_product(features: Array, kernel: Array, dtype: jnp.dtype) -> Array:
    """A product of inputs cast to `dtype`, accumulated in float32; the same in the backward pass.

    JAX's own derivative would multiply float32 gradients by the rounded inputs, which is no faster
    than float32.
    """

    @jax.custom_vjp
    def multiply(features: Array, kernel: Array) -> Array:
        return _dot(features.astype(dtype), kernel.astype(dtype))

    def forward(features: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
        factors = features.astype(dtype), kernel.astype(dtype)
        return _dot(*factors), factors

    def backward(factors: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
        features, kernel = factors
        gradient = gradient.astype(dtype)
        flat = gradient.reshape(-1, gradient.shape[-1])
        return _dot(gradient, kernel.T), _dot(features.reshape(-1, features.shape[-1]).T, flat)

    multiply.defvjp(forward, backward)
    return multiply(features, kernel)


def _dot(one: Array, other: Array) -> Array:
    return jnp.matmul(one, other, preferred_element_type=jnp.float32)
