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


_TRAINERS: dict[Any, Trainer] = {}


def trained(*, few_kernels: bool = False, **settings: Any) -> tuple[Any, dict[str, Any]]:
    """Params and metrics after some updates; those that differ in values share a program."""
    config = dataclasses.replace(CONFIG, **settings)
    structure = few_kernels, *settings
    if structure not in _TRAINERS:
        network = NetworkConfig(hidden_dim=8, num_layers=1)
        trainer = Trainer(probes.Pairing(), config, network)
        trainer.algorithm = PPO(trainer.setup._replace(few_kernels=few_kernels))  # as on GPUs
        _TRAINERS[structure] = trainer
    trainer = _TRAINERS[structure].with_inputs(config, config.course, range(1))
    state, sums = trainer.take_sums(trainer.run(trainer.init(0), 3))
    return jax.device_get(state.params), summarise(sums, trainer.metrics)


def assert_equal(one: Any, other: Any) -> None:
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), one, other)


@pytest.mark.slow
def test_an_update_ends_after_the_epoch_that_exceeds_the_target_and_reports_it() -> None:
    at_once, measured = trained(target_kl=1e-12)
    one_epoch, of_one = trained(update_epochs=1)
    assert_equal(at_once, one_epoch)
    assert measured["train/approx_kl"] == pytest.approx(of_one["train/approx_kl"], rel=1e-3)
    never, measured = trained(target_kl=1e9)
    whole, of_all = trained()
    assert_equal(never, whole)
    assert measured["train/approx_kl"] == pytest.approx(of_all["train/approx_kl"], rel=1e-3)
    assert of_all["train/approx_kl"] > 2 * of_one["train/approx_kl"]


@pytest.mark.thorough
def test_few_kernels_and_clipping_far_away_change_nothing_and_near_it_does() -> None:
    plain, measured = trained()
    few, same = trained(few_kernels=True, clip_value_loss=1e9)
    assert_equal(few, plain)
    assert same == pytest.approx(measured, rel=1e-4, abs=1e-6, nan_ok=True)
    with pytest.raises(AssertionError):
        assert_equal(trained(few_kernels=True, clip_value_loss=1e-3)[0], plain)


def test_the_larger_of_two_value_losses_counts() -> None:
    value, old, returns = jnp.array([3.0, 3.0, 1.1]), jnp.ones(3), jnp.array([0.0, 4.0, 2.0])
    near = old + jnp.clip(value - old, -0.5, 0.5)  # 1.5, 1.5, 1.1
    squares = np.array([3.0**2, 2.5**2, 0.9**2])  # the value's own, the clipped one's, the same
    factor, terms = clipped_value_terms(value, near, returns)
    assert factor * np.asarray(terms) == pytest.approx(0.5 * squares)
