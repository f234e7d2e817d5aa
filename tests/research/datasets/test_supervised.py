"""The loss of lessons: the probabilities and values of a teacher."""

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.research.datasets.clone import Lessons, loss


@pytest.mark.thorough
def test_the_divergence_from_oneself_is_zero() -> None:
    config = NetworkConfig(hidden_dim=8, num_layers=1)
    network = make_network(probes.Grid(), config)
    params = jax.jit(network.init)(jax.random.key(0))
    rng = np.random.default_rng(2)
    observations, masks = rng.integers(0, 25, (50, 1), np.uint8), rng.random((50, 4)) < 0.4
    masks[:, [1, 3]] = True
    logits, values, _ = jax.jit(network)(params, jnp.asarray(observations))
    own = jnp.exp(distribution.log_probabilities(logits, jnp.asarray(masks)))
    packed = distribution.pack_mask(jnp.asarray(masks))
    lessons = Lessons(jnp.asarray(observations), packed, own, values)
    parts = jax.jit(loss, static_argnums=0)(network, params, lessons)
    assert parts.divergence == pytest.approx(0, abs=1e-5)
    assert parts.value == 0
