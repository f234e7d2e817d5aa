"""Settings that are inputs of the update: one program serves all of their values."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.algorithm import Hyperparameters
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.trainer import Trainer

CONFIG = PPOConfig(
    num_envs=8,
    num_steps=8,
    total_timesteps=64 * 4,
    num_minibatches=2,
    lr=1e-2,
    lr_schedule="linear",
    ent_coef=0.02,
    final_ent_coef=0.01,
    target_kl=0.1,
    clip_value_loss=0.1,
)
NETWORK = NetworkConfig(hidden_dim=8, num_layers=1)
OTHERS = {
    "lr": 2e-2,
    "lr_schedule": "cosine",
    "gamma": 0.9,
    "gae_lambda": 0.8,
    "clip_eps": 0.01,
    "vf_coef": 0.3,
    "ent_coef": 0.05,
    "final_ent_coef": 0.001,
    "max_grad_norm": 0.1,
    "target_kl": 1e-5,
    "clip_value_loss": 1e-3,
    "total_timesteps": 64 * 5,
}


def program(config: PPOConfig, course: Course | None = None) -> str:
    trainer = Trainer(probes.Grid(), config, NETWORK, course=course)
    text: str = trainer._run.lower(trainer.state_shape(), jnp.int32(0), trainer.hyper).as_text()
    return text


@pytest.fixture(scope="module")
def of_config() -> str:
    return program(CONFIG)


@pytest.mark.thorough
def test_the_program_is_the_same_for_all_values(of_config: str) -> None:
    assert program(dataclasses.replace(CONFIG, **OTHERS)) == of_config


@pytest.mark.thorough
def test_the_program_of_a_resumed_run_is_that_of_a_new_one(of_config: str) -> None:
    assert program(CONFIG, Course(64, 64 * 9, 3, 3 * 32)) == of_config


def test_progress_of_a_run_that_resumed_with_another_batch_counts_transitions() -> None:
    course = Course(64, 64 * 9, first_update=6, first_timesteps=6 * 32)
    progress = Hyperparameters.of(CONFIG, course).progress
    for update in (6, 8, 12):
        assert progress(update) == course.timesteps(update) / course.total_timesteps


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return Trainer(probes.Grid(), CONFIG, NETWORK)


@pytest.mark.thorough
@pytest.mark.parametrize("name", OTHERS)
def test_each_value_changes_what_is_learned(name: str, trainer: Trainer) -> None:
    def params_of(config: PPOConfig) -> list[Any]:
        one = trainer.with_inputs(config, config.course, range(1))
        return list(map(np.asarray, jax.tree.leaves(one.run(one.init(0), 3).params)))

    other = dataclasses.replace(CONFIG, **{name: OTHERS[name]})
    mine, theirs = (params_of(config) for config in (CONFIG, other))
    assert any((a != b).any() for a, b in zip(mine, theirs, strict=True))
