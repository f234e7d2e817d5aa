"""The loss of values, and clipped gradients."""

from types import SimpleNamespace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.network import ChanceNetwork
from hackmatrix.learning.trainer.batches import value_loss
from hackmatrix.learning.trainer.gradients import clip_by_global_norm


def inner() -> Any:
    names = ("num_actions", "recurrent", "reads_features", "init", "initial_carry")
    return SimpleNamespace(**dict.fromkeys(names))


@pytest.mark.thorough
def test_chances_are_learned_by_cross_entropy() -> None:
    """Its gradient by the logit is the chance less the outcome, however sure the network is."""
    network = ChanceNetwork(inner())
    logits, outcomes = jnp.array([-3.0, 0.0, 6.0]), jnp.array([1.0, 0.25, 0.0])

    def loss(logits: jax.Array) -> jax.Array:
        return value_loss(network, jax.nn.sigmoid(logits), outcomes)

    chances = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
    expected = -np.mean(outcomes * np.log(chances) + (1 - outcomes) * np.log(1 - chances))
    np.testing.assert_allclose(loss(logits), expected, rtol=1e-4)
    np.testing.assert_allclose(jax.grad(loss)(logits), (chances - outcomes) / 3, rtol=1e-3)
    assert np.isfinite(loss(jnp.array([-90.0, 90.0, 90.0])))


def test_returns_are_learned_by_squares() -> None:
    values, returns = jnp.array([1.0, 4.0]), jnp.array([3.0, 4.0])
    assert value_loss(cast(Any, inner()), values, returns) == 1.0


@pytest.mark.parametrize("max_norm", [1.0, 10.0])
def test_gradients_of_two_dtypes_are_clipped_together(max_norm: float) -> None:
    """Their global norm is 5; the limit is an input of the program, as hyperparameters are."""
    grads = {"half": jnp.array([3.0], jnp.bfloat16), "float": jnp.array([4.0], jnp.float32)}

    @jax.jit
    def clipped(limit: jax.Array) -> Any:
        clip = clip_by_global_norm(limit)
        return clip.update(grads, clip.init(grads))[0]

    found = clipped(jnp.float32(max_norm))
    assert [found[name].dtype for name in grads] == [grad.dtype for grad in grads.values()]
    scale = min(1, max_norm / 5)
    np.testing.assert_allclose(np.float32(found["half"]), 3 * scale, rtol=0.01)
    np.testing.assert_allclose(found["float"], 4 * scale, rtol=1e-6)
