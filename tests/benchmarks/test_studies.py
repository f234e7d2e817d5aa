"""What benchmarks train: configs that are there, and differ as they say."""

from typing import Any

import pytest
import yaml
from paths import CONFIGS

from benchmarks import classic
from benchmarks.recipe import STUDY
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve

VARIATIONS = [changed for group in STUDY.values() for changed in group.values()]


@pytest.mark.parametrize("changed", VARIATIONS, ids=str)
def test_a_variation_is_a_config(changed: dict[str, Any]) -> None:
    settings, _ = resolve(dict(changed), read_config(CONFIGS / "best.yaml"))
    assert {name: settings.flat()[name] for name in changed} == changed


def test_every_curve_has_a_configuration_and_published_results() -> None:
    for file in classic._CONFIGS:
        config = yaml.safe_load((CONFIGS / f"{file}.yaml").read_text())
        assert config["environment"]["name"] in classic.PUBLISHED
