"""What devices exchange."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType

from hackmatrix.learner import mesh

ARRAYS = {"a": jnp.ones((2, 3)), "b": (jnp.ones(4), jnp.ones(()))}


@pytest.mark.parametrize("reduce", [mesh.pmean, mesh.psum, mesh.pmax])
@pytest.mark.parametrize(("tree", "exchanges"), [(ARRAYS, 1), (jnp.ones(3), 1), ({}, 0)])
def test_arrays_that_are_exchanged_together_are_one(
    reduce: Callable[[Any], Any], tree: Any, exchanges: int
) -> None:
    two = AbstractMesh((2,), (mesh.AXIS,), axis_types=(AxisType.Auto,))
    specs = {"in_specs": mesh.REPLICATED, "out_specs": mesh.REPLICATED}
    shares = jax.shard_map(reduce, mesh=two, check_vma=False, **specs)
    program, shapes = jax.make_jaxpr(shares, return_shape=True)(tree)
    assert len(re.findall(r"= p(?:sum|max)\b", str(program))) == exchanges
    assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, tree)


def test_arrays_of_two_dtypes_are_not_exchanged_together() -> None:
    two = AbstractMesh((2,), (mesh.AXIS,), axis_types=(AxisType.Auto,))
    shares = jax.shard_map(
        mesh.psum, mesh=two, in_specs=mesh.REPLICATED, out_specs=mesh.REPLICATED, check_vma=False
    )
    with pytest.raises(AssertionError):
        jax.make_jaxpr(shares)((jnp.ones(2), jnp.ones(2, jnp.int32)))
