"""`hackmatrix bench memory`: bytes of a transition and of a training process."""

import pytest

import hackmatrix
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.learning.algorithms.ppo import PPO
from hackmatrix.learning.reporting.metrics import device_metrics
from hackmatrix.learning.trainer.measures import metrics_of
from hackmatrix.research.bench import memory
from hackmatrix.research.bench.options import UpdateOptions, train_config


@pytest.mark.thorough
def test_memory_counts_every_buffer_of_a_rollout() -> None:
    config = train_config(UpdateOptions(num_envs=8, num_steps=4))
    # action, mask, log-probability, value, reward, two flags, final value, advantage
    numbers = 1 + 4 * 4 + 2 + 4 + 4
    after_last = 8 * 4  # values float32[8]
    metrics = device_metrics(metrics_of(hackmatrix.make(), PPO))
    measured = 8 * len(metrics) + 4  # and a sum of squares
    assert memory._rollout_bytes(config) == 8 * 4 * (RECORD_SIZE + numbers) + after_last + measured
