"""`benchmarks.update_parts`: every part of an update is timed."""

import probe_environments as probes
import pytest

from benchmarks.update_parts import PARTS, Parts, seconds_of_parts
from hackmatrix.learning.ppo.trainer import Trainer
from hackmatrix.learning.settings.config import TrainConfig


@pytest.mark.slow
def test_every_part_of_an_update_is_timed() -> None:
    config = TrainConfig(num_envs=4, num_steps=3, num_minibatches=2, update_epochs=2, hidden_dim=8)
    env = probes.Grid()
    trainer = Trainer(env, config)
    seconds = seconds_of_parts(trainer, trainer.init(0), repeats=1)
    assert set(seconds) == set(PARTS)
    assert all(s > 0 for s in seconds.values())
    lines = Parts(config, dict.fromkeys(PARTS, 0.5)).text().splitlines()
    assert [line[:32].rstrip() for line in lines[1:-1]] == list(PARTS.values())
    assert all(line.endswith("      500") for line in lines[1:-1])
