"""A network learns from lessons: the probabilities and values of a teacher."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import Network, make_network
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.environments.registry import make_environment
from hackmatrix.research.datasets.clone import Lessons, learn, loss


def a_network() -> tuple[Network, PyTree]:
    config = NetworkConfig(hidden_dim=8, num_layers=1)
    network = make_network(make_environment("HackMatrix-v1", "tactical"), config)
    return network, jax.jit(network.init)(jax.random.key(0))


def made_up_lessons(count: int) -> Lessons:
    """The teacher wants the last valid action if the first number is large; numbers are values."""
    rng = np.random.default_rng(2)
    observations = rng.integers(0, 2, (count, 432), np.int8)
    masks = rng.random((count, 28)) < 0.4
    masks[:, [3, 5]] = True
    last = 27 - masks[:, ::-1].argmax(axis=1)
    wanted = np.where(observations[:, 0] == 1, last, masks.argmax(axis=1))
    return Lessons(
        jnp.asarray(observations),
        distribution.pack_mask(jnp.asarray(masks)),
        jax.nn.one_hot(wanted, 28, dtype=jnp.float16),
        jnp.asarray(observations[:, 1], jnp.float32),
    )


@pytest.mark.thorough
def test_a_network_comes_near_its_teacher() -> None:
    network, params = a_network()
    lessons = made_up_lessons(600)
    before = loss(network, params, lessons)
    taught, _ = learn(network, params, lessons, lr=1e-2, epochs=30, batch=64, seed=1)
    after = loss(network, taught, lessons)
    assert after.divergence < before.divergence / 2
    assert after.value < before.value / 2


def test_the_divergence_from_oneself_is_zero() -> None:
    network, params = a_network()
    lessons = made_up_lessons(50)
    mask = distribution.unpack_mask(lessons.mask, 28)
    logits, values, _ = network(params, lessons.observations)
    own = jnp.exp(distribution.log_probabilities(logits, mask))
    parts = loss(network, params, lessons._replace(policy=own, value=values))
    assert parts.divergence == pytest.approx(0, abs=1e-5)
    assert parts.value == 0
