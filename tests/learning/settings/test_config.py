"""A configuration that exists is valid; wrong ones are refused by flag and range."""

from pathlib import Path
from typing import Any

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.environments.task_list import TaskList
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions

CHANCE = {"value": "chance", "reward": "win", "normalize_rewards": False}
TASKS = TaskList.of("['CartPole-v1', 'Acrobot-v1']")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_envs": 0}, "--num-envs must be at least 1 and at most 16777216, got 0"),
        ({"lr": 0.0}, "--lr must be above 0, got 0.0"),
        ({"lr": float("nan")}, "--lr must be above 0, got nan"),
        ({"lr": float("inf")}, "--lr must be above 0, got inf"),
        ({"gamma": 1.01}, "--gamma must be at least 0 and at most 1, got 1.01"),
        ({"seed": 2**31}, "--seed must be at least 0 and at most 2147483647, got 2147483648"),
        (
            {"seed": 2**31 - 2, "num_seeds": 3},
            "--seed 2147483646 with --num-seeds 3 goes beyond the largest seed, 2147483647",
        ),
        ({"num_minibatches": 5}, "--num-minibatches 5 must divide .* 256 x 128 = 32768"),
        ({"gradient_accumulation_steps": 3}, "--gradient-accumulation-steps 3 must divide .* 4"),
        (
            {"ent_coef": 0.0, "final_ent_coef": 0.01},
            "--final-ent-coef 0.01 needs --ent-coef above 0",
        ),
        (
            {"algorithm": "sac"},
            "--algorithm must be one of ppo, pqn, expert_iteration, module:Class, got 'sac'",
        ),
        ({"value": "chance", "normalize_rewards": False}, "--value chance needs --reward win and"),
        ({"value": "chance", "reward": "win"}, "needs --reward win and --no-normalize-rewards"),
        ({**CHANCE, "algorithm": "pqn"}, "--value chance: the values of pqn are no chances"),
        ({**CHANCE, "clip_value_loss": 0.2}, "--clip-value-loss goes with --value return"),
        ({"win_worth": 0.0}, "--win-worth must be above 0, got 0.0"),
        ({"program_worth": -1.0}, "--program-worth must be at least 0, got -1.0"),
        ({"multi_task": True}, "--multi-task needs --task-list"),
        ({"task_list": TASKS}, "--task-list needs --multi-task"),
        (
            {"multi_task": True, "task_list": TASKS, "env": "CartPole-v1"},
            "--env CartPole-v1: with --multi-task, --task-list names them all",
        ),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        TrainConfig.of(**wrong)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"run_name": "a/b"}, "--run-name must be 1 to 100 letters"),
        ({"run_name": ""}, "--run-name must be"),
        ({"run_name": ".."}, "--run-name must be"),
        ({"run_suffix": "a b"}, "--run-suffix must be"),
        ({"rewind": True}, "--rewind needs --resume"),
        ({"reset_optimizer": True}, "--reset-optimizer needs --resume"),
        ({"resume": "a", "resume_run": "b"}, "give --resume or --resume-run, not both"),
        ({"output_dir": Path("a"), "run_name": "b"}, "--output-dir is the run's folder"),
        ({"output_dir": Path("gs://bucket/run")}, "output_dir must be a folder here"),
        ({"profile_step": 0}, "--profile-step must be at least 1, got 0"),
    ],
)
def test_wrong_options_of_a_call_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        TrainOptions(**wrong)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "updates"),
    [
        ({}, None),
        ({"save_interval": 7}, 7),
        ({"save_interval_timesteps": 32_769}, 2),
        ({"save_interval": 7, "save_interval_timesteps": 1}, 1),
    ],
)
def test_checkpoints_come_by_the_clock_unless_updates_or_steps_are_given(
    settings: dict[str, Any], updates: int | None
) -> None:
    assert TrainConfig.of(**settings).save_updates == updates


@pytest.mark.parametrize(
    "right",
    [
        {"gamma": 0.0},
        {"gamma": 1.0},
        {"ent_coef": 0.0},
        {"max_episode_steps": 1},
        {"seed": 2**31 - 2, "num_seeds": 2},
    ],
)
def test_the_bounds_belong_to_the_range(right: dict[str, object]) -> None:
    TrainConfig.of(**right)


@pytest.mark.parametrize(
    ("total", "updates"), [(1, 1), (32_768, 1), (32_769, 2), (10_000_000, 306)]
)
def test_steps_are_rounded_up_to_whole_updates(total: int, updates: int) -> None:
    assert PPOConfig(total_timesteps=total).course.num_updates == updates
