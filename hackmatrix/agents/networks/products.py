"""Matrix products with inputs in a given precision."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

Array = jax.Array


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
