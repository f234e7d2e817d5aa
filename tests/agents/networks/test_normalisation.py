"""Normalised features as a change of the first layer."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.networks.normalisation import EPSILON, FeatureScale
from hackmatrix.game.rules.observation import RECORD_SIZE

pytestmark = pytest.mark.thorough

RANDOM = np.random.default_rng(0)
FEATURES = 5


def scale_of(*batches: np.ndarray) -> FeatureScale:
    scale = FeatureScale.create(FEATURES)
    for batch in batches:
        less_mean = jnp.asarray(batch) - scale.mean
        scale = scale.update(less_mean.sum(axis=0), (less_mean**2).sum(axis=0), len(batch))
    return scale


def batches() -> list[np.ndarray]:
    """Of different sizes and means; the last feature never changes."""
    size = np.array([0.1, 1, 100, 1000, 0])
    return [
        (RANDOM.normal(shift, 1, (count, FEATURES)) * size).astype(np.float32)
        for shift, count in [(0, 50), (5, 200), (-3, 7), (10, 1000)]
    ]


def test_mean_and_variance_are_those_of_all_that_was_seen() -> None:
    seen = batches()
    scale = scale_of(*seen)
    whole = np.concatenate(seen).astype(np.float64)
    assert float(scale.count) == len(whole)
    np.testing.assert_allclose(scale.mean, whole.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(scale.variance, whole.var(axis=0), rtol=1e-3)


def test_a_network_with_folded_params_answers_as_if_features_were_normalised() -> None:
    network = ActorCritic(4, 16, 2)
    shapes = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, FEATURES)))
    params = jax.tree.map(lambda p: np.float32(0.3 * RANDOM.normal(size=p.shape)), shapes)
    answer = jax.jit(network.apply)
    scale = scale_of(*batches())
    features = batches()[1]
    normalised = (features - scale.mean) / np.sqrt(scale.variance + EPSILON)
    answers = answer(scale.fold(params), jnp.asarray(features))
    for one, other in zip(answers, answer(params, normalised), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    # Before anything was seen nothing changes.
    folded = FeatureScale.create(FEATURES).fold(params)
    jax.tree.map(np.testing.assert_array_equal, params, folded)


def test_sums_of_table_rows_and_written_out_features_agree() -> None:
    env = hackmatrix.make(layout="full")
    network = FeatureNetwork(env, ActorCritic(28, 8, 1), reads_features=True)
    observations = jnp.asarray(RANDOM.integers(0, 2, (4, RECORD_SIZE), np.uint8))
    scale = FeatureScale(
        count=jnp.float32(10),
        mean=jnp.asarray(RANDOM.normal(size=env.feature_size), jnp.float32),
        variance=jnp.asarray(RANDOM.uniform(0.1, 2, env.feature_size), jnp.float32),
    )

    @jax.jit
    def both(key: jax.Array) -> Any:
        params = scale.fold(jax.jit(network.init)(key))
        written_out = network.module.apply(params, jax.vmap(env.features)(observations))
        return network(params, observations)[:2], written_out

    answers, expected = both(jax.random.key(1))
    for one, other in zip(answers, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
