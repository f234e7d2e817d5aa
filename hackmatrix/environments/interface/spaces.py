"""Spaces: the valid actions of an environment and the bounds of its arrays."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.environments.interface.environment import Environment, PyTree

__all__ = ["Box", "Discrete", "Space", "StepSpec", "trace_spec"]

Array = jax.Array
Bound = float | tuple[float, ...]


class Space(Protocol):
    """A set of arrays of one shape and dtype. Its methods can be traced by JAX."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of each array."""

    @property
    def dtype(self) -> Any:
        """Dtype of each array, an np.dtype."""

    def contains(self, x: Any) -> Array:
        """bool[], whether an array belongs to the space."""

    def sample(self, key: Array) -> Array:
        """Draws an array uniformly."""


@dataclass(frozen=True)
class Discrete:
    """The integers 0 .. n - 1."""

    n: int
    dtype: Any = np.int32  # kept as np.dtype

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a scalar."""
        return ()

    def contains(self, x: Any) -> Array:
        """bool[], whether `x` is one integer of any dtype, from 0 to n - 1."""
        x = jnp.asarray(x)
        if x.shape or not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.bool_(False)
        return (x >= 0) & (x < self.n)

    def sample(self, key: Array, mask: Array | None = None) -> Array:
        """Draws one of the integers, all equally likely.

        Args:
            key: a JAX random key.
            mask: bool[n], the integers that may be drawn, at least one; None for all.
        """
        if mask is None:
            return jax.random.randint(key, (), 0, self.n, self.dtype)
        return jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)).astype(self.dtype)


@dataclass(frozen=True)
class Box:
    """Arrays of one shape and dtype, with each element between two bounds, both included.

    A bound is one number, or a tuple with a number for each element of the last axis.
    """

    low: Bound
    high: Bound
    shape: tuple[int, ...]
    dtype: Any = np.float32  # kept as np.dtype

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def contains(self, x: Any) -> Array:
        """bool[], whether `x` has the shape and the dtype and lies within the bounds."""
        x = jnp.asarray(x)
        if (x.shape, x.dtype) != (self.shape, self.dtype):
            return jnp.bool_(False)
        return jnp.all((x >= self._as_array(self.low)) & (x <= self._as_array(self.high)))

    def sample(self, key: Array) -> Array:
        """Draws an array uniformly.

        An infinite bound is replaced by the largest float, the largest 32-bit integer by that minus
        1.
        """
        low, high = self._as_array(self.low), self._as_array(self.high)
        if np.issubdtype(self.dtype, np.floating):
            part = jax.random.uniform(key, self.shape, self.dtype)
            # Not low + part * (high - low): the difference of large bounds overflows.
            return jnp.nan_to_num(low) * (1 - part) + jnp.nan_to_num(high) * part
        if self.dtype == np.bool_:
            return jax.random.bernoulli(key, shape=self.shape)
        wide = np.uint32 if self.dtype == np.uint32 else np.int32
        above = np.minimum(high.astype(np.int64) + 1, np.iinfo(wide).max).astype(wide)
        return jax.random.randint(key, self.shape, low, above, self.dtype)

    def _as_array(self, bound: Bound) -> np.ndarray:
        return np.asarray(bound, self.dtype)


class StepSpec(NamedTuple):
    """Shapes and dtypes of the values that `step` returns, in its order.

    Each is a `Space` if its bounds are known, else a `jax.ShapeDtypeStruct`, or a pytree of them.
    """

    observation: PyTree
    state: PyTree
    reward: PyTree
    terminated: PyTree
    truncated: PyTree
    info: dict[str, PyTree]


def trace_spec(env: Environment) -> StepSpec:
    """The shapes and dtypes that any environment's `step` returns, found by tracing it."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    _, state = jax.eval_shape(env.reset, key)
    action = jax.ShapeDtypeStruct((), jnp.int32)
    return StepSpec(*jax.eval_shape(env.step, key, state, action))
