"""Orthogonal matrices: JAX's own, but for rounding and without LAPACK."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.mlp import _orthonormal, orthogonal


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (7, 1)])
def test_they_are_those_of_jax(shape: tuple[int, int]) -> None:
    made = jax.jit(orthogonal, static_argnums=1)(jax.random.key(2), shape, 3.0)
    wanted = jax.nn.initializers.orthogonal(3.0)(jax.random.key(2), shape)
    np.testing.assert_allclose(made, wanted, atol=2e-5)


def test_columns_that_are_nearly_dependent_become_orthogonal() -> None:
    near = jnp.ones((40, 8)) + 1e-4 * jax.random.normal(jax.random.key(0), (40, 8))
    made = np.asarray(jax.jit(_orthonormal)(near))
    np.testing.assert_allclose(made.T @ made, np.eye(8), atol=1e-6)


def test_they_need_no_library_besides_xla() -> None:
    lowered = jax.jit(lambda key: orthogonal(key, (4, 3))).lower(jax.random.key(0))
    assert "custom_call" not in lowered.as_text()


_MAKE = """
import os, sys
os.sched_setaffinity(0, eval(sys.argv[1]))
import jax
from hackmatrix.agents.networks.mlp import orthogonal
made = jax.jit(orthogonal, static_argnums=1)(jax.random.key(0), (485, 256))
sys.stdout.buffer.write(bytes(jax.device_get(made).data))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has this call")
def test_they_are_the_same_on_any_number_of_cores() -> None:
    cores = os.sched_getaffinity(0)
    made = [
        subprocess.check_output([sys.executable, "-c", _MAKE, str(some)])
        for some in ({min(cores)}, cores)
    ]
    assert made[0] == made[1]
    assert any(made[0])
