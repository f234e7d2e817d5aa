"""Products in lower precision: rounded factors, float32 sums, both ways."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.networks.sparse import product


def rounded(x: np.ndarray) -> np.ndarray:
    return np.asarray(jnp.asarray(x).astype(jnp.bfloat16).astype(jnp.float32))


@pytest.mark.parametrize("shape", [(3, 5, 20), (20,)])
def test_a_product_and_its_derivatives_in_bfloat16(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    features, kernel = random.normal(size=shape), random.normal(size=(20, 7))
    gradient = random.normal(size=(*shape[:-1], 7))
    x, w, g = (a.astype(np.float32) for a in (features, kernel, gradient))
    y, pull_back = jax.vjp(lambda x, w: product(x, w, jnp.bfloat16), jnp.asarray(x), jnp.asarray(w))
    dx, dw = pull_back(jnp.asarray(g))
    assert y.dtype == dx.dtype == dw.dtype == jnp.float32
    x, w, g = rounded(x), rounded(w), rounded(g)
    np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dx, g @ w.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dw, x.reshape(-1, 20).T @ g.reshape(-1, 7), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_every_product_of_a_network_has_factors_of_its_dtype(dtype: type) -> None:
    network = ActorCritic(28, 16, 2, dtype)
    features = jnp.ones((5, 40))
    params = jax.eval_shape(network.init, jax.random.key(0), features)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(params)} == {"float32"}

    def loss(params: dict, features: jax.Array) -> jax.Array:
        logits, value = network.apply(params, features)
        assert logits.dtype == value.dtype == jnp.float32
        return jnp.sum(logits) + jnp.sum(value)

    gradient = jax.grad(loss, argnums=(0, 1))
    jaxpr, shapes = jax.make_jaxpr(gradient, return_shape=True)(params, features)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(shapes)} == {"float32"}
    equations = every_equation(jaxpr.jaxpr)
    products = [each for each in equations if each.primitive.name == "dot_general"]
    assert len(products) == 3 * 4  # forward, and for weights and inputs, of 4 layers
    for equation in products:
        factors = {variable.aval.dtype for variable in equation.invars}
        assert factors == {jnp.dtype(dtype)}
        assert equation.outvars[0].aval.dtype == jnp.float32


def every_equation(jaxpr: object) -> list:
    found = []
    for equation in jaxpr.eqns:
        found.append(equation)
        for inner in jaxprs_in_params(equation.params):
            found += every_equation(inner)
    return found
