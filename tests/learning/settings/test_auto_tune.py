"""Settings for the device that was found."""

import os
from typing import Any

import pytest

from hackmatrix.learning.settings import devices
from hackmatrix.learning.settings.config import RunConfig, TrainConfig
from hackmatrix.learning.settings.resolve import auto_scale_for_batch_size, resolve, settings_for


@pytest.mark.parametrize(
    ("platform", "count", "games", "dtype"),
    [
        ("cpu", 1, 2048, "float32"),
        ("gpu", 1, 8192, "bfloat16"),
        ("gpu", 8, 65_536, "bfloat16"),
        ("tpu", 4, 8192, "bfloat16"),
        ("another", 1, 2048, "bfloat16"),
    ],
)
def test_every_device_gets_settings_that_fit_it(
    platform: str, count: int, games: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    config = TrainConfig.of(**settings_for(platform, count))
    ppo, _ = auto_scale_for_batch_size(config.learning)
    assert (ppo.num_envs, config.network.dtype) == (games, dtype)
    assert ppo.batch_size // ppo.num_minibatches == 8192
    assert ppo.num_envs % count == 0


def test_one_core_gets_fewer_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert settings_for("cpu", 1)["num_envs"] == 1024


class Chip:
    platform = "tpu"


def test_what_is_given_stays_and_what_is_chosen_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(_: RunConfig) -> list[Any]:
        return [Chip()] * 4

    monkeypatch.setattr(devices, "available_devices", found)
    config, notes = resolve({"num_steps": 64}, auto_tune=True)
    assert (config.learning.num_envs, config.learning.num_steps, config.network.dtype) == (
        8192,
        64,
        "bfloat16",
    )
    assert "tuned for this device: num_envs 8192" in notes
    assert not any("num_steps" in note for note in notes)
    assert any("update_epochs 4 -> 2" in note for note in notes)  # scaling goes on from there
    assert resolve({"num_devices": 2}, auto_tune=True)[0].learning.num_envs == 4096


def test_settings_that_are_given_fit_those_that_are_tuned() -> None:
    assert resolve({"num_envs": 64}, auto_tune=True)[0].learning.num_minibatches == 4
    resolve({"num_envs": 5, "num_steps": 12}, auto_tune=True)
    config, _ = resolve({}, {"batch_size": 64}, auto_tune=True)
    assert config.learning.batch_size // config.learning.num_minibatches == 64
    everything = TrainConfig().as_dict()
    config, notes = resolve({}, None, everything, auto_tune=True)
    assert config == TrainConfig()
    assert notes == ["nothing to tune for this device: all of it is given"]
