"""Orthogonal initial weights, the same on any number of cores."""

import jax
import jax.numpy as jnp

Array = jax.Array


def orthogonal(key: Array, shape: tuple[int, int], gain: float = 1.0) -> Array:
    """A uniformly distributed matrix of orthonormal columns, times `gain`; of rows, if fewer.

    It is `jax.nn.initializers.orthogonal` but for rounding. That asks LAPACK for a QR, whose last
    bits depend on the number of threads, and which takes a quarter of a second to import.

    Args:
        key: random key.
        shape: rows and columns.
        gain: length of each column, or of each row.

    Returns:
        float32[rows, columns].
    """
    rows, columns = shape
    columns_of = jax.random.normal(key, (max(shape), min(shape)))
    kernel = gain * _orthonormal(columns_of)
    return kernel if rows >= columns else kernel.T


def _orthonormal(matrix: Array) -> Array:
    """The columns made orthonormal one by one, float32[M, N] with M >= N.

    Each is freed twice of what lies along those before it: once is not enough in floats, twice is
    (Giraud et al. 2005, https://doi.org/10.1016/j.camwa.2005.08.009).
    """

    def add_column(index: Array, basis: Array) -> Array:
        column = jax.lax.dynamic_slice_in_dim(matrix, index, 1, axis=1)
        for _ in range(2):
            along = (basis * column).sum(0)
            column -= (basis * along).sum(1, keepdims=True)
        column /= jnp.sqrt((column**2).sum())
        return jax.lax.dynamic_update_slice_in_dim(basis, column, index, axis=1)

    return jax.lax.fori_loop(0, matrix.shape[1], add_column, jnp.zeros_like(matrix))
