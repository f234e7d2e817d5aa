"""The files of settings in the package."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from paths import CONFIGS, ROOT

from hackmatrix.core.errors import UserError
from hackmatrix.core.yaml_file import CURRICULA, config_file, describe_configs
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import default_settings, read_config
from hackmatrix.learning.settings.resolve import resolve

RUNS = sorted(CONFIGS.glob("*.yaml"))
ALL = sorted(CONFIGS.rglob("*.yaml"))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_file_is_a_configuration_that_says_what_to_expect(path: Path) -> None:
    resolve({}, read_config(path))
    comment = path.read_text().split("\n\n")[0]
    assert re.search(r"^# Expect: .{20,}", comment, re.MULTILINE)
    assert re.search(r"^# Takes: .{10,}", comment, re.MULTILINE)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_file_begins_with_a_sentence(path: Path) -> None:
    """`--list-configs` shows it beside the name."""
    assert re.fullmatch(r"# [A-Z].*[.]", path.read_text().partition("\n")[0])


@pytest.mark.parametrize("path", sorted(CURRICULA.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_curriculum_is_known_by_its_name(path: Path) -> None:
    assert Curriculum.of(path.stem) == Curriculum.of(path)


def test_the_original_has_its_features_and_rewards_and_all_defaults_of_the_flags() -> None:
    original = TrainConfig.of(observation="classic", normalize_rewards=False)
    assert resolve({}, read_config(CONFIGS / "original.yaml"))[0] == original


@pytest.mark.parametrize(
    ("name", "packaged"),
    [
        ("train_config", CONFIGS / "train_config.yaml"),
        ("train_config.template", CONFIGS / "train_config.yaml"),
        ("curriculum", CONFIGS / "curricula" / "curriculum.yaml"),
    ],
)
def test_the_folder_config_has_examples_of_the_package(name: str, packaged: Path) -> None:
    """Copies, as a checkout on Windows may have no links."""
    assert (ROOT / "config" / f"{name}.yaml").read_bytes() == packaged.read_bytes()


def test_a_run_without_a_file_has_the_best_settings_where_they_are_for_its_environment() -> None:
    assert default_settings({}) == default_settings({"env": "HackMatrix-v1"})
    assert default_settings({}) == read_config(CONFIGS / "best.yaml")
    assert default_settings({"env": "CartPole-v1"}) == {}
    assert default_settings({"multi_task": True}) == {}


def test_a_tpu_trains_as_best_does_in_larger_batches() -> None:
    tpu, best = (
        resolve({}, read_config(CONFIGS / f"{name}.yaml"))[0] for name in ("tpu_v4_8", "best")
    )
    larger = ("num_envs", "num_minibatches", "total_timesteps", "lr")
    assert (
        replace(tpu.learning, **{name: getattr(best.learning, name) for name in larger})
        == best.learning
    )
    assert replace(tpu.network, dtype="float32", symmetric=False) == best.network
    assert tpu.environment == best.environment
    assert tpu.run.tpu_cores == 4
    assert tpu.learning.batch_size // tpu.learning.num_minibatches == 4_096  # docs/scaling.md


def test_a_gpu_trains_on_as_further_does_in_larger_batches() -> None:
    gpu, further = (
        resolve({}, read_config(CONFIGS / f"{name}.yaml"))[0] for name in ("further_gpu", "further")
    )
    other = "num_envs num_steps num_minibatches total_timesteps lr lr_schedule params_average"
    assert replace(
        gpu.learning, **{name: getattr(further.learning, name) for name in other.split()}
    ) == (further.learning)
    assert (gpu.network, gpu.environment) == (further.network, further.environment)
    assert gpu.learning.batch_size // gpu.learning.num_minibatches == 4_096


def test_a_name_means_a_file_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert config_file(Path("best")) == CONFIGS / "best.yaml"
    assert config_file(Path("configs/best.yaml")) == CONFIGS / "best.yaml"
    assert config_file(Path("best.yaml")) == Path("best.yaml")
    Path("configs").mkdir()
    for name in ("mine", "configs/best.yaml"):
        Path(name).touch()
        assert config_file(Path(name)) == Path(name)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    names = ", ".join(path.stem for path in RUNS)
    with pytest.raises(UserError) as told:
        config_file(Path("bets"))
    said = "bets: no file, and no settings of this name"
    assert str(told.value) == f"{said}; did you mean best? There are {names}"
    with pytest.raises(UserError, match=f"of this name; there are {names}$"):
        config_file(Path("xyzzy"))


def test_the_list_has_a_line_for_each() -> None:
    assert [line.split()[0] for line in describe_configs().splitlines()] == [
        path.stem for path in RUNS
    ]
