"""The exchange between devices."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType

from hackmatrix.core.devices import mesh

ARRAYS = {"a": jnp.ones((2, 3)), "b": (jnp.ones(4), jnp.ones(()))}


@pytest.mark.parametrize("reduce", [mesh.pmean, mesh.psum, mesh.pmax])
@pytest.mark.parametrize(("tree", "exchanges"), [(ARRAYS, 1), (jnp.ones(3), 1), ({}, 0)])
def test_what_is_exchanged_is_one(reduce: Callable[[Any], Any], tree: Any, exchanges: int) -> None:
    two = AbstractMesh((2,), (mesh.AXIS,), axis_types=(AxisType.Auto,))
    specs = {"in_specs": mesh.REPLICATED, "out_specs": mesh.REPLICATED}
    shares = jax.shard_map(reduce, mesh=two, check_vma=False, **specs)
    program, shapes = jax.make_jaxpr(shares, return_shape=True)(tree)
    assert len(re.findall(r"= p(?:sum|max)\b", str(program))) == exchanges
    assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, tree)


def test_arrays_of_two_dtypes_are_exchanged_as_two_and_keep_their_places() -> None:
    tree = {"a": jnp.ones(2), "b": jnp.ones((2, 2), jnp.uint32), "c": jnp.ones(()), "d": None}
    two = AbstractMesh((2,), (mesh.AXIS,), axis_types=(AxisType.Auto,))
    shares = jax.shard_map(
        mesh.psum, mesh=two, in_specs=mesh.REPLICATED, out_specs=mesh.REPLICATED, check_vma=False
    )
    program, shapes = jax.make_jaxpr(shares, return_shape=True)(tree)
    assert len(re.findall(r"= psum\b", str(program))) == 2
    kinds = jax.tree.map(lambda x: (x.shape, x.dtype), (shapes, tree), is_leaf=jnp.isscalar)
    assert kinds[0] == kinds[1]


def test_arrays_of_several_dtypes_are_summed_and_averaged() -> None:
    def sums(x: jax.Array) -> Any:
        half = (2 * x).astype(jnp.bfloat16)
        tree = {"float": x, "count": x.astype(jnp.int32), "half": half, "last": -x}
        return mesh.psum(tree), mesh.pmean({"float": x, "half": x.astype(jnp.bfloat16)})

    of_two = jnp.array([1.0, 2.0])
    summed, mean = jax.vmap(sums, axis_name=mesh.AXIS)(of_two)
    assert {name: float(x[0]) for name, x in summed.items()} == {
        "float": 3,
        "count": 3,
        "half": 6,
        "last": -3,
    }
    assert (summed["count"].dtype, summed["half"].dtype) == (jnp.int32, jnp.bfloat16)
    assert (float(mean["float"][0]), float(mean["half"][0])) == (1.5, 1.5)
