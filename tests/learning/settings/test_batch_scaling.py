"""The table of settings for large batches."""

import pytest

from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.settings.resolve import auto_scale_for_batch_size


def test_minibatches_that_make_one_step_together_count_as_one() -> None:
    config, _ = auto_scale_for_batch_size(PPOConfig(num_envs=2048), (), accumulation=4)
    assert (config.num_minibatches, config.gradient_accumulation_steps) == (32, 4)
    assert config.lr == 2.5e-4  # 16 gradient steps, as with the defaults
    config, _ = auto_scale_for_batch_size(PPOConfig(num_envs=2048), (), accumulation=16)
    assert config.lr == 2.5e-4


def test_large_minibatches_are_told_where_they_are_given() -> None:
    _, notes = auto_scale_for_batch_size(PPOConfig(num_envs=2048), {"num_minibatches"})
    assert "minibatches of 65,536 transitions are large, but num_minibatches is given" in notes


@pytest.mark.parametrize(
    ("num_envs", "minibatches", "epochs", "lr"),
    [
        (511, 4, 4, 2.5e-4),
        (512, 8, 2, 2.5e-4),
        (768, 12, 2, 2.5e-4 * 16 / 24),
        (2048, 32, 2, 6.25e-5),
    ],
)
def test_settings_by_number_of_games(
    num_envs: int, minibatches: int, epochs: int, lr: float
) -> None:
    config, notes = auto_scale_for_batch_size(PPOConfig(num_envs=num_envs))
    assert (config.num_minibatches, config.update_epochs) == (minibatches, epochs)
    assert config.lr == pytest.approx(lr)
    assert bool(notes) == (num_envs >= 512)


def test_minibatches_go_down_to_a_divisor_of_the_batch() -> None:
    config, _ = auto_scale_for_batch_size(PPOConfig(num_envs=2_025, num_steps=100))
    assert config.batch_size // 32_768 == 6
    assert config.num_minibatches == 20  # 24, 23, 22 and 21 do not divide 202,500
    assert config.batch_size % config.num_minibatches == 0


@pytest.mark.parametrize(
    ("given", "minibatches", "epochs", "lr"),
    [
        ({"num_minibatches": 16}, 16, 2, 2.5e-4 * 16 / 32),
        ({"update_epochs": 1}, 32, 1, 2.5e-4 * 16 / 32),
        ({"lr": 1e-3}, 32, 2, 1e-3),
        ({"num_minibatches": 4, "update_epochs": 4}, 4, 4, 2.5e-4),
        ({"num_minibatches": 4, "update_epochs": 1}, 4, 1, 2.5e-4),  # never above the default
    ],
)
def test_what_the_user_gave_stays(
    given: dict[str, float], minibatches: int, epochs: int, lr: float
) -> None:
    config, _ = auto_scale_for_batch_size(PPOConfig(num_envs=2048, **given), given)
    assert (config.num_minibatches, config.update_epochs) == (minibatches, epochs)
    assert config.lr == pytest.approx(lr)


def test_the_changes_are_told() -> None:
    _, notes = auto_scale_for_batch_size(PPOConfig(num_envs=2048))
    assert notes == ["num_minibatches 4 -> 32", "update_epochs 4 -> 2", "lr 0.00025 -> 6.25e-05"]
