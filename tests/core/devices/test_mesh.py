"""The exchange between devices."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from paths import HELPERS

from hackmatrix.core.devices import mesh

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


TWO_DEVICES = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
import jax.numpy as jnp, numpy as np
from hackmatrix.core.devices import mesh

two = mesh.mesh_of(jax.devices())
def sums(x):
    half = (2 * x).astype(jnp.bfloat16)
    tree = {"float": x, "count": x.astype(jnp.int32), "half": half, "last": -x}
    return mesh.psum(tree), mesh.pmean({"float": x, "half": x.astype(jnp.bfloat16)})
run = mesh.on_devices(sums, two, mesh.SHARDED, mesh.REPLICATED)
summed, mean = run(jnp.array([1.0, 2.0]))
assert [float(summed[name][0]) for name in ("float", "count", "half", "last")] == [3, 3, 6, -3]
assert summed["count"].dtype == jnp.int32 and summed["half"].dtype == jnp.bfloat16
assert (float(mean["float"][0]), float(mean["half"][0])) == (1.5, 1.5), mean
"""


def test_two_devices_sum_arrays_of_several_dtypes() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", TWO_DEVICES], check=True)


A_NETWORK_OF_TWO_DTYPES = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
import jax.numpy as jnp, numpy as np
import probe_environments as probes
from flax import linen as nn
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.learning.algorithms.config import PPOConfig

class Halves(nn.Module):
    @nn.compact
    def __call__(self, features):
        hidden = nn.relu(nn.Dense(4, param_dtype=jnp.bfloat16)(features))
        return nn.Dense(2)(hidden), nn.Dense(1)(hidden)[..., 0]

env = probes.Policy()
config = PPOConfig(num_envs=4, num_steps=2, num_minibatches=1, update_epochs=1, lr=0.1)
def params(devices):
    network = FeatureNetwork(env, Halves(), reads_features=False)
    trainer = Trainer(env, config, network, devices)
    first = trainer.init(0)
    before = jax.device_get(first.params)
    return before, jax.device_get(trainer.run(first, 2).params)
before, both = params(jax.devices())
dtypes = [x.dtype.name for x in jax.tree.leaves(both)]
assert dtypes == ["bfloat16"] * 2 + ["float32"] * 4, dtypes
for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(both)):
    assert (old != new).any()
_, alone = params(jax.devices()[:1])
for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(both)):
    np.testing.assert_allclose(np.float32(one), np.float32(two), rtol=0.02, atol=0.004)
"""


@pytest.mark.slow
def test_a_network_of_two_dtypes_learns_on_two_devices_as_on_one() -> None:
    environment = {**os.environ, "PYTHONPATH": str(HELPERS)}
    subprocess.run([sys.executable, "-c", A_NETWORK_OF_TWO_DTYPES], check=True, env=environment)
