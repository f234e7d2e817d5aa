"""The part of a reward that only shapes it falls over a run."""

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

UPDATES, STEPS = 4, 4


class Shaped(probes.Value):
    """One step, which pays 1, of which 0.75 shapes."""

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> Step:
        obs, after, reward, terminated, truncated, info = super().step(key, state, action)
        return obs, after, reward, terminated, truncated, info | {"shaping": jnp.float32(0.75)}


@pytest.mark.parametrize(
    ("final", "rewards"), [(None, [1, 1, 1, 1]), (0.2, [1, 0.85, 0.7, 0.55]), (1, [1, 1, 1, 1])]
)
def test_it_falls_linearly_to_its_last_part(final: float | None, rewards: list[float]) -> None:
    config = PPOConfig(
        num_envs=2,
        num_steps=STEPS,
        num_minibatches=1,
        total_timesteps=UPDATES * 2 * STEPS,
        final_shaping=final,
    )
    trainer = Trainer(Shaped(), config, NetworkConfig(hidden_dim=4, num_layers=1))
    state, means = trainer.init(0), []
    for _ in range(UPDATES):
        state, sums = trainer.take_sums(trainer.run(state, 1))
        means.append(summarise(sums, trainer.metrics)["train/mean_reward"])
    assert means == pytest.approx(rewards)
