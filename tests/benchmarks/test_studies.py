"""The studies of the recipe: each variation is a config that differs as it says."""

from typing import Any

import pytest
from paths import CONFIGS

from benchmarks.recipe import STUDY
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve

VARIATIONS = [changed for group in STUDY.values() for changed in group.values()]


@pytest.mark.parametrize("changed", VARIATIONS, ids=str)
def test_a_variation_is_a_config(changed: dict[str, Any]) -> None:
    settings, _ = resolve(dict(changed), read_config(CONFIGS / "best.yaml"))
    assert {name: settings.flat()[name] for name in changed} == changed
