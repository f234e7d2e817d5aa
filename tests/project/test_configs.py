"""The files in configs/."""

import re
from pathlib import Path

import pytest
from paths import CONFIGS

from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve

RUNS = sorted(path for path in CONFIGS.glob("*.yaml") if path.stem != "spot_tpu")


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_file_is_a_configuration_that_says_what_to_expect(path: Path) -> None:
    resolve({}, read_config(path))
    comment = path.read_text().split("\n\n")[0]
    assert re.search(r"^# Expect: .{20,}", comment, re.MULTILINE)
    assert re.search(r"^# Takes: .{10,}", comment, re.MULTILINE)


def test_the_default_is_the_default() -> None:
    assert resolve({}, read_config(CONFIGS / "default.yaml"))[0] == TrainConfig()


def test_the_large_batch_is_scaled_as_the_original_found_best() -> None:
    config, _ = resolve({}, read_config(CONFIGS / "large_batch.yaml"))
    assert (config.ppo.num_minibatches, config.ppo.update_epochs, config.ppo.lr) == (32, 2, 6.25e-5)


def test_a_tpu_has_minibatches_of_the_same_size_on_each_chip() -> None:
    config, _ = resolve({}, read_config(CONFIGS / "tpu_v4_8.yaml"))
    assert config.run.tpu_cores == 4
    assert config.ppo.batch_size // config.ppo.num_minibatches // 4 == 8192
