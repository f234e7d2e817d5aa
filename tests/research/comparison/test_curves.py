"""Curves of a run's agents: values against steps and against seconds."""

import json
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run

from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.curves import (
    LearningCurve,
    NoMetricError,
    curves_of,
    read_run,
    shared_metric,
)

RETURN = "train/mean_episode_return"


def run_with(path: Path, rows: list[dict[str, object]]) -> Path:
    """A run with these rows of metrics."""
    make_run(path, float)
    path.joinpath("metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(steps: int, value: float | None, speed: float | None = None) -> dict[str, object]:
    found: dict[str, object] = {"update": steps, "timesteps": steps, RETURN: value}
    return found if speed is None else found | {"train/steps_per_second": speed}


def curve_of(folder: Path, *rows: dict[str, object]) -> LearningCurve:
    (curve,) = curves_of(read_run(run_with(folder / "run", list(rows))), RETURN)
    return curve


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ([row(100, 1.0, 100.0), row(300, 2.0, 50.0), row(400, 3.0, 100.0)], [1.0, 5.0, 6.0]),
        # Rows without a speed lie between their neighbours, or beyond at the last speed.
        (
            [row(100, 1.0, 100.0), row(200, 2.0), row(300, 3.0, 50.0), row(350, 4.0)],
            [1.0, 3.0, 5.0, 6.0],
        ),
    ],
    ids=["each at its speed", "without a speed"],
)
def test_seconds_are_steps_at_the_speed_of_each_row(
    rows: list[dict[str, object]], seconds: list[float], tmp_path: Path
) -> None:
    assert curve_of(tmp_path, *rows).seconds.tolist() == seconds


def test_between_two_rows_a_value_is_on_the_straight_line(tmp_path: Path) -> None:
    curve = curve_of(tmp_path, row(100, 1.0, 100.0), row(300, 5.0, 100.0))
    assert curve.at(np.array([100.0, 150.0, 300.0]), seconds=False).tolist() == [1.0, 2.0, 5.0]
    assert curve.at(np.array([1.5, 3.0]), seconds=True).tolist() == [2.0, 5.0]


def test_values_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    values = (1.0, None, float("nan"), 2)
    curve = curve_of(tmp_path, *(row(100 * i, value, 100.0) for i, value in enumerate(values, 1)))
    assert curve.steps.tolist() == [100.0, 400.0]


def test_an_agent_without_any_value_is_an_error(tmp_path: Path) -> None:
    both = {"agents": [{"seed": 0, RETURN: 1.0}, {"seed": 1, RETURN: None}]}
    run = read_run(run_with(tmp_path / "run", [row(100, 1.0, 100.0) | both]))
    with pytest.raises(UserError, match=f"seed 1 has no finite value of {RETURN}"):
        curves_of(run, RETURN)


def test_a_metric_that_a_run_lacks_is_named_beside_those_it_has(tmp_path: Path) -> None:
    run = read_run(run_with(tmp_path / "run", [row(100, 1.0, 100.0)]))
    with pytest.raises(NoMetricError, match=f"no metric nope; it has .*{RETURN}"):
        curves_of(run, "nope")


def test_returns_in_evaluations_are_compared_if_every_run_has_them(tmp_path: Path) -> None:
    trained = read_run(run_with(tmp_path / "trained", [row(100, 1.0)]))
    evaluated = read_run(
        run_with(tmp_path / "evaluated", [row(100, 1.0) | {"eval/mean_return": 2.0}])
    )
    assert shared_metric([evaluated]) == "eval/mean_return"
    assert shared_metric([evaluated, trained]) == RETURN


@pytest.mark.parametrize("rows", [[], [{"timesteps": "many"}]])
def test_a_run_without_rows(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    with pytest.raises(UserError, match="has no metrics yet"):
        read_run(run_with(tmp_path / "run", rows))


def test_a_checkpoint_by_another_trainer_s_name_means_its_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", lambda steps: steps)
    assert read_run(run / "checkpoint_40.pkl").path == run
