"""A configuration that exists is valid; wrong ones are refused by flag and range."""

import pytest

from hackmatrix.errors import UserError
from hackmatrix.training.config import TrainConfig


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_envs": 0}, "--num-envs must be at least 1 and at most 16777216, got 0"),
        ({"lr": 0.0}, "--lr must be above 0, got 0.0"),
        ({"lr": float("nan")}, "--lr must be above 0, got nan"),
        ({"lr": float("inf")}, "--lr must be above 0, got inf"),
        ({"gamma": 1.01}, "--gamma must be at least 0 and at most 1, got 1.01"),
        ({"seed": 2**31}, "--seed must be at least 0 and at most 2147483647, got 2147483648"),
        ({"num_minibatches": 5}, "--num-minibatches 5 must divide .* 256 x 128 = 32768"),
        ({"run_name": "a/b"}, "--run-name must be 1 to 100 letters"),
        ({"run_name": ""}, "--run-name must be"),
        ({"run_name": ".."}, "--run-name must be"),
        ({"run_suffix": "a b"}, "--run-suffix must be"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        TrainConfig(**wrong)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "right", [{"gamma": 0.0}, {"gamma": 1.0}, {"ent_coef": 0.0}, {"max_episode_steps": 1}]
)
def test_the_bounds_belong_to_the_range(right: dict[str, object]) -> None:
    TrainConfig(**right)


@pytest.mark.parametrize(
    ("total", "updates"), [(1, 1), (32_768, 1), (32_769, 2), (10_000_000, 306)]
)
def test_steps_are_rounded_up_to_whole_updates(total: int, updates: int) -> None:
    assert TrainConfig(total_timesteps=total).num_updates == updates
