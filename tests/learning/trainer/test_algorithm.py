"""Settings that are inputs of the update: one program serves all of their values."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from sharing_trainer import SharingTrainer

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.learning.algorithms.config import PPOConfig
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
    "total_timesteps": 64 * 5,
}


def program(config: PPOConfig, course: Course | None = None) -> str:
    trainer = Trainer(probes.Grid(), config, NETWORK, course=course)
    text: str = trainer._run.lower(trainer.state_shape(), jnp.int32(0), trainer.hyper).as_text()
    return text


@pytest.fixture(scope="module")
def of_config() -> str:
    return program(CONFIG)


def test_the_program_is_the_same_for_all_values(of_config: str) -> None:
    assert program(dataclasses.replace(CONFIG, **OTHERS)) == of_config


@pytest.mark.thorough
def test_so_it_is_for_settings_that_are_off_by_default() -> None:
    some = dataclasses.replace(CONFIG, target_kl=0.1, clip_value_loss=0.1)
    others = dataclasses.replace(CONFIG, target_kl=0.2, clip_value_loss=0.3)
    assert program(some) == program(others)


@pytest.mark.thorough
def test_the_program_of_a_resumed_run_is_that_of_a_new_one(of_config: str) -> None:
    assert program(CONFIG, Course(64, 64 * 9, 3, 3 * 32)) == of_config


def test_a_structure_is_another_program(of_config: str) -> None:
    assert program(dataclasses.replace(CONFIG, update_epochs=2)) != of_config


@pytest.mark.usefixtures("shared_programs")
@pytest.mark.parametrize("name", OTHERS)
def test_each_value_changes_what_is_learned(name: str) -> None:
    other = dataclasses.replace(CONFIG, **{name: OTHERS[name]})
    mine, theirs = (params_of(config) for config in (CONFIG, other))
    assert any((a != b).any() for a, b in zip(mine, theirs, strict=True))


def params_of(config: PPOConfig) -> list[Any]:
    trainer = SharingTrainer(probes.Grid(), config, NETWORK)
    return list(map(np.asarray, jax.tree.leaves(trainer.run(trainer.init(0), 3).params)))
