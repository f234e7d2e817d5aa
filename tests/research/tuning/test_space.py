"""The search space: what a file may say, and what points of it mean."""

from pathlib import Path
from typing import Any

import optuna
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.research.tuning.space import (
    BUDGET,
    DEFAULT,
    grid_points,
    read_space,
    settings_of,
    with_budget,
)

FILE = """\
model:
  hidden_sizes: [[64, 64], [256, 256, 256]]
training:
  learning_rate: {low: 1.0e-4, high: 1.0e-2, log: true, points: 3}
  n_epochs: [1, 2]
  num_steps: {low: 32, high: 128, step: 32, type: int}
  batch_size: {low: 256, high: 1024, log: true}
"""


def space_of(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "space.yaml"
    path.write_text(text)
    return read_space(path)


def test_names_and_values_of_configuration_files_are_understood(tmp_path: Path) -> None:
    space = space_of(tmp_path, FILE)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        params = study.ask({key: each.distribution() for key, each in space.items()}).params
        settings = settings_of(params)
        names = {"hidden_dim", "num_layers", "lr", "update_epochs", "num_steps", "batch_size"}
        assert settings.keys() == names
        assert (settings["hidden_dim"], settings["num_layers"]) in {(64, 2), (256, 3)}
        assert 1e-4 <= settings["lr"] <= 1e-2
        assert settings["num_steps"] in {32, 64, 96, 128}
        assert isinstance(settings["batch_size"], int)


def test_a_grid_has_equal_ratios_where_a_range_is_logarithmic(tmp_path: Path) -> None:
    points = grid_points(space_of(tmp_path, FILE))
    assert len(points) == 2 * 3 * 2 * 4 * 4
    rates = sorted({point["training.learning_rate"] for point in points})
    assert rates == pytest.approx([1e-4, 1e-3, 1e-2])
    assert {point["training.batch_size"] for point in points} == {256, 406, 645, 1024}


def test_the_points_of_a_grid_are_steps_where_a_range_has_them(tmp_path: Path) -> None:
    space = space_of(
        tmp_path,
        "training:\n  num_steps: {low: 32, high: 256, step: 32}\n"
        "  gamma: {low: 0.9, high: 1.0, step: 0.02, points: 3}\n",
    )
    points = grid_points(space)
    for key, dimension in space.items():
        for point in points:
            assert dimension.distribution()._contains(point[key])
    assert {point["training.num_steps"] for point in points} == {32, 96, 192, 256}
    assert len(points) == 4 * 3


def test_a_grid_that_no_memory_holds_is_refused(tmp_path: Path) -> None:
    names = ("lr", "gamma", "gae_lambda", "clip_eps", "vf_coef")
    ranges = "".join(f"  {name}: {{low: 0.1, high: 0.2, points: 100}}\n" for name in names)
    with pytest.raises(UserError, match="the grid has 10,000,000,000 points"):
        grid_points(space_of(tmp_path, f"training:\n{ranges}"))


def test_every_point_of_the_default_space_is_valid() -> None:
    for key, dimension in DEFAULT.items():
        for value in dimension.grid():
            assert len(settings_of({key: value})) == 1


def test_the_budget_is_searched_unless_the_file_does() -> None:
    space = with_budget(DEFAULT, 300_000)
    assert (space[BUDGET].low, space[BUDGET].high, space[BUDGET].log) == (10_000, 300_000, True)
    assert with_budget(space, 7) is space


def test_two_names_of_one_setting_are_refused() -> None:
    with pytest.raises(UserError, match="names lr twice"):
        settings_of({"training.lr": 0.1, "model.learning_rate": 0.1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no setting to search"),
        ("training:\n  lrr: [1]", "unknown setting training.lrr, did you mean training.lr?"),
        ("training:\n  lr: 0.1", "must be a list of choices, or a range"),
        ("training:\n  lr: [0.1, -1]", "training.lr must be above 0, got -1"),
        ("training:\n  lr: {low: 0.1}", "must be a list of choices, or a range"),
        ("training:\n  lr: {low: 0.1, high: 0.2, x: 1}", "must be a list of choices, or a range"),
        ("training:\n  lr: {low: 0.2, high: 0.1}", "needs low below high"),
        ("training:\n  lr: {low: a, high: 0.1}", "must be a number, got 'a'"),
        ("training:\n  lr: {low: 0.1, high: 0.2, type: int}", "is of type float, not 'int'"),
        ("training:\n  lr: {low: 0.1, high: 0.2, step: 0.3}", "needs a step of which 0.1 to 0.2"),
        ("training:\n  lr: {low: 0.1, high: 0.2, points: 1000000}", "and 2 to 100,000 points"),
        ("training:\n  lr: [0.1]\n  learning_rate: [0.2]", "mean the same; give one of them"),
        ("training:\n  num_minibatches: [2]\n  batch_size: [64]", "mean the same; give one"),
        ("training:\n  seed: [1, 2]", "training.seed makes no agent better"),
        ("training:\n  gamma: {low: 0, high: 1, log: true}", "low must be above 0"),
        ("model:\n  activation: {low: 0, high: 1}", "has no range: give a list of choices"),
        ("model:\n  activation: [relu, selu]", "must be one of relu, tanh"),
    ],
)
def test_wrong_files_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        space_of(tmp_path, text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
