"""The network of the original: names, shapes and first weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.mlp import ActorCritic

FEATURES = jax.random.normal(jax.random.key(1), (64, 300))


@pytest.mark.parametrize(("hidden_dim", "num_layers"), [(256, 2), (16, 4)])
def test_layers_are_named_trunk_then_logits_then_value(hidden_dim: int, num_layers: int) -> None:
    network = ActorCritic(28, hidden_dim, num_layers)
    layers = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, 40)))["params"]
    assert list(layers) == [f"Dense_{i}" for i in range(num_layers + 2)]
    shapes = [layer["kernel"].shape for layer in layers.values()]
    trunk = [(40, hidden_dim)] + [(hidden_dim, hidden_dim)] * (num_layers - 1)
    assert shapes == [*trunk, (hidden_dim, 28), (hidden_dim, 1)]


@pytest.mark.thorough
def test_the_first_policy_is_nearly_uniform_and_weights_are_orthogonal() -> None:
    network = ActorCritic(28)
    params = jax.jit(network.init)(jax.random.key(0), FEATURES)
    logits, value = jax.jit(network.apply)(params, FEATURES)
    assert (logits.shape, value.shape) == ((64, 28), (64,))
    probabilities = np.asarray(jax.nn.softmax(logits))
    assert probabilities.max() / probabilities.min() < 2
    for name, gain in (("Dense_1", np.sqrt(2)), ("Dense_2", 0.01), ("Dense_3", 1.0)):
        kernel = np.asarray(params["params"][name]["kernel"])
        np.testing.assert_allclose(
            kernel.T @ kernel, gain**2 * np.eye(kernel.shape[1]), atol=1e-4 * gain**2
        )
        assert (np.asarray(params["params"][name]["bias"]) == 0).all()


def test_layer_norm_makes_the_scale_of_a_layer_irrelevant() -> None:
    network = ActorCritic(28, 16, 2, layer_norm=True)
    shapes, rng = (
        jax.eval_shape(network.init, jax.random.key(0), FEATURES),
        np.random.default_rng(0),
    )
    params = jax.tree.map(lambda x: np.float32(rng.normal(size=x.shape)), shapes)
    names = [*(f"Dense_{i}" for i in range(4)), "LayerNorm_0", "LayerNorm_1"]
    assert sorted(params["params"]) == names
    larger = jax.tree.map(np.copy, params)
    for name in ("Dense_0", "Dense_1"):
        for weights in larger["params"][name].values():
            weights *= 7
    apply = jax.jit(network.apply)
    answers = apply(larger, FEATURES), apply(params, FEATURES)
    for found, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
