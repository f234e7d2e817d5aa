"""A configuration has parts; for users and for compiled programs a setting is its name alone."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from hackmatrix.agents.networks.architectures import ALGORITHMS, PPO
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.task_list import TaskList
from hackmatrix.learning.algorithms.config import CONFIG_CLASSES
from hackmatrix.learning.settings.config import OPTIONS, TrainConfig

LEVELS = [{"advance": {"win_rate": 0.5}}, {}]
BASE = TrainConfig.of(curriculum=Curriculum.of(LEVELS), init_from=Path("a.npz"), ent_coef=0.01)
OTHER: dict[str, dict[str, Any]] = {
    "curriculum": {"curriculum": Curriculum.of([*LEVELS[:1], {"credits": 3}])},
    "env": {"env": "other:make"},
    "multi_task": {
        "multi_task": True,
        "task_list": TaskList.of(["CartPole-v1", "Acrobot-v1"]),
        "curriculum": None,
    },
    "value": {"value": "chance", "reward": "win", "normalize_rewards": False},
}
OTHER["task_list"] = OTHER["multi_task"]
OF_OWN = "algorithm_settings"  # of algorithms outside the package: see test_algorithms.py
BASES = {PPO: BASE} | {
    name: BASE.but(algorithm=name, **ALGORITHMS[name].settings)
    for name in CONFIG_CLASSES
    if name != PPO
}


def base_of(name: str) -> TrainConfig:
    """`BASE`, of an algorithm that has this setting."""
    return next(base for base in BASES.values() if name in base.flat())


def changed(name: str) -> TrainConfig:
    """`base_of` with another value of a setting."""
    option, base = OPTIONS[name], base_of(name)
    value = base.flat()[name]
    if option.choices is not None:
        other: Any = next(each for each in option.choices if each != value)
    elif option.value_type is bool:
        other = not value
    elif option.value_type is int:
        other = 2 * (value or 1)
    elif option.value_type is float:
        other = 0.5 * (value or 1.0)
    else:
        other = option.value_type("other") if name not in OTHER else None
    return base.but(**OTHER.get(name, {name: other}))


def test_each_setting_is_in_one_part_and_in_one_section() -> None:
    for base in BASES.values():
        parts = [getattr(base, field.name) for field in dataclasses.fields(TrainConfig)]
        names = [field.name for part in parts for field in dataclasses.fields(part)]
        assert len(set(names)) == len(names)
    assert {name for base in BASES.values() for name in base.flat()} == OPTIONS.keys()
    assert all(option.section is not None for option in OPTIONS.values())


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - {OF_OWN}))
def test_flat_settings_are_the_configuration(name: str) -> None:
    config = changed(name)
    assert config != base_of(name)
    assert config.flat()[name] != base_of(name).flat()[name]
    assert TrainConfig.of(**config.flat()) == config


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - {OF_OWN}))
def test_programs_differ_where_a_setting_that_they_read_does(name: str) -> None:
    assert (changed(name).compiled_settings != base_of(name).compiled_settings) == bool(
        OPTIONS[name].compiled
    )


def test_programs_depend_on_no_seed_place_or_input_of_the_update() -> None:
    unread = "seed init_from device num_devices kernels tpu tpu_cores distributed on_unhealthy"
    unread += (
        " log_interval save_interval_minutes save_interval save_interval_timesteps keep_checkpoints"
    )
    unread += (
        " total_timesteps lr lr_schedule gamma gae_lambda clip_eps vf_coef ent_coef final_ent_coef"
        " max_grad_norm exploration_initial_eps exploration_final_eps exploration_fraction"
        " search_weight"
        " checkpoint_dir eval_interval eval_episodes tensorboard wandb project entity artifact"
    )
    read = {name for base in BASES.values() for name in base.compiled_settings}
    assert OPTIONS.keys() - read == set(unread.split())


def test_programs_take_the_values_of_a_setting_that_may_be_absent_as_an_input() -> None:
    one, other = BASE.but(target_kl=0.01), BASE.but(target_kl=0.02)
    assert BASE.compiled_settings != one.compiled_settings == other.compiled_settings


def test_the_place_of_a_setting_says_nothing_to_programs() -> None:
    assert list(BASE.compiled_settings) == sorted(BASE.compiled_settings)
