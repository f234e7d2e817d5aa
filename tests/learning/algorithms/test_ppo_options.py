"""Options of PPO that are off unless given: target KL and clipped values."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.algorithms.ppo import PPO
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.trainer.batches import clipped_value_terms
from hackmatrix.learning.trainer.trainer import Trainer

CONFIG = PPOConfig(num_envs=16, num_steps=8, num_minibatches=2, update_epochs=4, lr=1e-2)


def trained(
    devices: int = 1, updates: int = 3, *, few_kernels: bool = False, **settings: Any
) -> tuple[Any, dict[str, Any]]:
    """Params and metrics after some updates."""
    config = dataclasses.replace(CONFIG, **settings)
    network = NetworkConfig(hidden_dim=8, num_layers=1)
    trainer = Trainer(probes.Pairing(), config, network, jax.devices()[:devices])
    trainer.algorithm = PPO(trainer.setup._replace(few_kernels=few_kernels))  # as on GPUs
    state, sums = trainer.take_sums(trainer.run(trainer.init(0), updates))
    return jax.device_get(state.params), summarise(sums, trainer.metrics)


def assert_equal(one: Any, other: Any) -> None:
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), one, other)


@pytest.mark.slow
def test_an_update_ends_after_the_epoch_that_exceeds_the_target() -> None:
    at_once, _ = trained(target_kl=1e-12)
    assert_equal(at_once, trained(update_epochs=1)[0])
    never, measured = trained(target_kl=1e9)
    whole, same = trained()
    assert_equal(never, whole)
    assert measured["train/approx_kl"] == pytest.approx(same["train/approx_kl"], rel=1e-3)


@pytest.mark.thorough
def test_the_metrics_are_those_of_the_last_epoch_made() -> None:
    _, measured = trained(target_kl=1e-12, updates=1)
    _, one_epoch = trained(update_epochs=1, updates=1)
    _, four = trained(updates=1)
    assert measured["train/approx_kl"] == pytest.approx(one_epoch["train/approx_kl"], rel=1e-3)
    assert four["train/approx_kl"] > 2 * measured["train/approx_kl"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings", [{}, pytest.param({"clip_value_loss": 0.2}, marks=pytest.mark.slow)]
)
def test_an_update_in_few_kernels_is_the_same(settings: dict[str, Any]) -> None:
    params, measured = trained(updates=1, **settings)
    few, same = trained(updates=1, few_kernels=True, **settings)
    assert_equal(few, params)
    assert same == pytest.approx(measured, rel=1e-4, abs=1e-6, nan_ok=True)


def test_the_larger_of_two_value_losses_counts() -> None:
    value, old, returns = jnp.array([3.0, 3.0, 1.1]), jnp.ones(3), jnp.array([0.0, 4.0, 2.0])
    near = old + jnp.clip(value - old, -0.5, 0.5)  # 1.5, 1.5, 1.1
    squares = np.array([3.0**2, 2.5**2, 0.9**2])  # the value's own, the clipped one's, the same
    factor, terms = clipped_value_terms(value, near, returns)
    assert factor * np.asarray(terms) == pytest.approx(0.5 * squares)


@pytest.mark.thorough
def test_clipping_far_away_changes_nothing_and_near_it_does() -> None:
    plain, _ = trained()
    assert_equal(trained(clip_value_loss=1e9)[0], plain)
    with pytest.raises(AssertionError):
        assert_equal(trained(clip_value_loss=1e-3)[0], plain)
