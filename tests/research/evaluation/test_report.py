"""Evaluations of games that are known."""

import json
from typing import Any

import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.research.evaluation.report import report_on


def games(**changes: object) -> PlayedGames:
    played = PlayedGames(
        returns=np.array([1.0, 2.0, 3.0, 1_000.0], np.float32),
        lengths=np.array([10, 20, 30, 2_000]),
        actions=np.ones((4, 2), int),
        terminated=np.array([True, True, True, False]),
        info={"jumps": np.array([0, 2, 8, 7])},
        final_observation=np.zeros((4, 1), np.uint8),
    )
    return played._replace(**changes)


def test_every_environment_has_return_length_and_games_cut_off() -> None:
    report = report_on(report_of(probes.Grid(), games()), games())
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    names = ("episodes", "mean_return", "mean_return_ci", "mean_length", "length_ci", "truncated")
    assert set(told) == {*names}
    assert (told["episodes"], told["truncated"]) == (4, 1)
    assert told["mean_return"] == pytest.approx(251.5)
    assert told["mean_length"] == pytest.approx(515)
    for mean, interval in (("mean_return", "mean_return_ci"), ("mean_length", "length_ci")):
        low, high = told[interval]
        assert low <= told[mean] <= high
    assert repr(report).startswith("<4 games: return 251.5 [")
    assert "\n" not in repr(report)
    labels = [line[:16].strip() for line in report.table().splitlines()]
    assert labels == ["games", "return", "length", "cut off"]


class Jumping(probes.Grid):
    """Reports a column and a breakdown of its own."""

    def report(self, games: PlayedGames) -> list[Column | Breakdown]:
        return [
            Column("jumps", "mean_jumps", games.info["jumps"], "jumps_ci"),
            Breakdown("fell", "falls", {"left": 1.0, "never": 0.0, "right": 2.5}, form=".1f"),
        ]


def test_an_environment_adds_columns_and_breakdowns() -> None:
    report = report_on(report_of(Jumping(), games()), games())
    told = report.as_dict()
    assert told["mean_jumps"] == pytest.approx(4.25)
    assert told["jumps_ci"][0] < 4.25 < told["jumps_ci"][1]
    assert told["falls"] == {"left": 1.0, "never": 0.0, "right": 2.5}
    assert report.means().keys() == {"mean_return", "mean_jumps", "mean_length"}
    table = report.table().splitlines()
    assert table[1].startswith("return          251.500  [")
    assert table[2].startswith("jumps           4.250  [")
    assert table[-1] == "fell            right 2.5  left 1.0"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (None, "report: must return a list of Column and Breakdown, returns None"),
        (["jumps"], "report: must return Column and Breakdown, returns 'jumps'"),
        ([Column("jumps", "mean_jumps", np.zeros(3))], "must have one number for each of 4 games"),
        (
            [Column("jumps", "mean_jumps", np.zeros(4), chosen=np.array([True] * 3 + [False]))],
            "must have one number for each of 3 games",
        ),
        ([Column("jumps", "mean_jumps", np.array(["a"] * 4))], "must have one number for each"),
        ([Column("return", "mean_return", np.zeros(4))], "the key mean_return is there twice"),
        ([Breakdown("fell", "falls", {"left": "much"}, ".1f")], "falls: left is 'much'"),
    ],
)
def test_a_wrong_report_is_refused_in_one_line(told: Any, message: str) -> None:
    class Reporting(probes.Grid):
        def report(self, games: PlayedGames) -> Any:
            return told

    with pytest.raises(UserError, match=message) as raised:
        report_of(Reporting(), games())
    assert "\n" not in str(raised.value)
