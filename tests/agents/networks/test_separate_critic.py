"""Two MLPs: what the value learns leaves the policy alone."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.networks.separate_critic import ActorAndCritic

pytestmark = pytest.mark.thorough

CONFIG = NetworkConfig("separate_critic", hidden_dim=8, num_layers=2)
FEATURES = jax.random.normal(jax.random.key(1), (5, 40))


@pytest.fixture(scope="module")
def params() -> dict[str, dict[str, dict[str, jax.Array]]]:
    return jax.jit(ActorAndCritic(28, CONFIG).init)(jax.random.key(0), FEATURES)


def test_each_half_is_an_mlp(params: dict[str, dict[str, dict[str, jax.Array]]]) -> None:
    logits, value = ActorAndCritic(28, CONFIG).apply(params, FEATURES)
    mlp, layers = ActorCritic(28, 8, 2), params["params"]
    heads = {"Dense_2": layers["Dense_4"], "Dense_3": layers["Dense_5"]}
    for first, found, place in ((0, logits, 0), (2, value, 1)):
        own = {f"Dense_{i}": layers[f"Dense_{first + i}"] for i in (0, 1)} | heads
        expected = mlp.apply({"params": own}, FEATURES)[place]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_their_gradients_meet_nowhere(
    params: dict[str, dict[str, dict[str, jax.Array]]],
) -> None:
    network = ActorAndCritic(28, CONFIG)

    @jax.jit
    def gradients(params: Any) -> Any:
        return [
            jax.grad(lambda p, place=place: jnp.sum(network.apply(p, FEATURES)[place] ** 2))(params)
            for place in (0, 1)
        ]

    learned = [
        {name for name, layer in gradient["params"].items() if jnp.any(layer["kernel"] != 0)}
        for gradient in gradients(params)
    ]
    of_logits, of_value = {"Dense_0", "Dense_1", "Dense_4"}, {"Dense_2", "Dense_3", "Dense_5"}
    assert learned == [of_logits, of_value]
