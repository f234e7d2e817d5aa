"""The part of a reward that only shapes it falls over a run."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.environments.interface.environment import Step
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.trainer.trainer import Trainer

pytestmark = pytest.mark.thorough

UPDATES = 4
CONFIG = PPOConfig(num_envs=2, num_steps=4, num_minibatches=1, total_timesteps=UPDATES * 2 * 4)
NETWORK = NetworkConfig(hidden_dim=4, num_layers=1)


class Shaped(probes.Value):
    """One step, which pays 1, of which 0.75 shapes."""

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> Step:
        obs, after, reward, terminated, truncated, info = super().step(key, state, action)
        return obs, after, reward, terminated, truncated, info | {"shaping": jnp.float32(0.75)}


def mean_rewards(trainer: Trainer) -> list[float]:
    """Of each update."""
    state, means = trainer.init(0), []
    for _ in range(UPDATES):
        state, sums = trainer.take_sums(trainer.run(state, 1))
        means.append(summarise(sums, trainer.metrics)["train/mean_reward"])
    return means


def test_it_falls_linearly_to_its_last_part() -> None:
    config = dataclasses.replace(CONFIG, final_shaping=0.2)
    trainer = Trainer(Shaped(), config, NETWORK)
    assert mean_rewards(trainer) == pytest.approx([1, 0.85, 0.7, 0.55])
    config = dataclasses.replace(CONFIG, final_shaping=1.0)
    constant = trainer.with_inputs(config, config.course, range(1))
    assert mean_rewards(constant) == pytest.approx([1, 1, 1, 1])


def test_it_is_whole_unless_it_is_to_fall() -> None:
    assert mean_rewards(Trainer(Shaped(), CONFIG, NETWORK)) == pytest.approx([1, 1, 1, 1])
