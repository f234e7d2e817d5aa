"""An environment's own metrics, summed over steps and games."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.environments.interface.environment import StepRecord
from hackmatrix.environments.interface.metric import Metric, Over
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.algorithms.ppo import PPO
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.trainer import measures
from hackmatrix.learning.trainer.trainer import Trainer


class Counting(probes.Probe):
    """An episode has 3 steps; action 1 is valid in its last two."""

    metrics = (
        Metric("own/steps", Over.STEPS, "1 in the first step of an episode"),
        Metric("own/end", Over.EPISODES, "position at the end"),
        Metric("own/highest", Over.HIGHEST, "highest position at an end"),
        Metric("own/chances", Over.CHANCES, "how often the first chance of action 1 was taken"),
        Metric("eval/mean_jumps", Over.EVALUATION, "not measured in training"),
    )

    def valid(self, position: jax.Array) -> jax.Array:
        return jnp.array([True, False]) | (position > 0)

    def advance(self, key: jax.Array, position: jax.Array, action: jax.Array) -> tuple[Any, ...]:
        return position + 1, 1.0, position == 2

    def observe(self, state: probes.State) -> jax.Array:
        return state.time.astype(jnp.uint8)[None]

    def step(self, key: jax.Array, state: probes.State, action: jax.Array) -> Any:
        *rest, info = super().step(key, state, action)
        return *rest, info | {"position": state.position + 1}

    def measure(self, step: StepRecord) -> dict[str, Any]:
        first_chance = step.mask[1] & ~step.previous_mask[1]
        return {
            "own/steps": ~step.mask[1],
            "own/end": step.info["position"],
            "own/highest": step.info["position"],
            "own/chances": (first_chance & (step.action == 1), first_chance),
        }


@pytest.mark.thorough
def test_every_kind_of_metric_has_its_total_and_weight_and_its_place_in_the_row() -> None:
    config = PPOConfig(num_envs=5, num_steps=7, num_minibatches=1)
    trainer = Trainer(Counting(), config, NetworkConfig(hidden_dim=4, num_layers=1))
    _, sums = trainer.take_sums(trainer.run(trainer.init(0), 2))
    games, steps = 5, 14  # two rollouts of 7 steps: episodes begin at 0, 3, 6, 9, 12
    np.testing.assert_array_equal(sums["own/steps"], [games * 5, games * steps])
    np.testing.assert_array_equal(sums["own/end"], [games * 4 * 3, games * 4])
    assert sums["own/highest"][0] == 3
    taken, chances = sums["own/chances"]
    assert chances == games * 5  # steps 1, 4, 7, 10, 13: also where a rollout begins
    assert 0 < taken < chances
    assert "eval/mean_jumps" not in sums

    row = summarise(sums, measures.metrics_of(Counting(), PPO))
    assert row["own/steps"] == pytest.approx(5 / 14)
    assert row["own/end"] == row["own/highest"] == 3
    assert row["train/mean_episode_return"] == 3
    assert row["train/num_episodes"] == 20
