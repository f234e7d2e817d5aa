"""Contests that stop when the difference is known."""

import math

import numpy as np
import pytest

from hackmatrix.agents.roster.names import resolve
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.report import Breakdown, Column
from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.agents import Play
from hackmatrix.research.evaluation.contest import (
    Contest,
    Entrant,
    confidence_sequence,
    play_until_decided,
)
from hackmatrix.research.evaluation.jax_agents import jax_player
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.plain_games import PlainGame, play_games
from hackmatrix.research.evaluation.report import Report
from hackmatrix.research.evaluation.statistics import estimate


def player(gain: float, size: int = 100) -> Play:
    """Its games' returns are their numbers' luck, common to all players, and noise of its own."""

    def play(_: object = (), first: int | None = None) -> Report:
        numbers = range(first or 0, (first or 0) + size)
        returns = np.array([7 * math.sin(n) + gain * (1 + math.cos(99 * n)) for n in numbers])
        chosen = returns > 0
        columns = [
            Column("return", "mean_return", returns),
            Column("good one", "mean_good", returns[chosen], chosen=chosen),
            Column("length", "mean_length", np.ones(size)),
        ]
        causes = Breakdown("causes", "causes", {"a": 1.0}, ".0f")
        found = [estimate(column.values) for column in columns]
        return Report(size, columns, found, np.ones(size, bool), [causes])

    return play


def test_the_sequence_is_that_of_the_paper() -> None:
    values = np.random.default_rng(0).normal(1, 3, 250)
    found = confidence_sequence(values, 1000)
    # Theorem 2.2 with rho that is best at n = 500, by its equation 10.
    rho2 = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05)) + 1) / 500
    t = 250
    radius = values.std() * math.sqrt(
        2 * (t * rho2 + 1) / (t**2 * rho2) * math.log(math.sqrt(t * rho2 + 1) / 0.05)
    )
    assert found == pytest.approx((values.mean(), values.mean() - radius, values.mean() + radius))


def test_games_stop_at_the_first_look_that_leaves_0() -> None:
    limits = Limits(episodes=10_000)
    reports, verdict = play_until_decided([player(0.0), player(0.1)], limits, "mean_return")
    assert verdict.is_decided
    assert 100 <= verdict.games == reports[0].episodes == len(reports[1].columns[0].values) < 10_000
    assert verdict.difference.low > 0
    before = verdict.games - 100
    if before:
        shorter = [report.columns[0].values[:before] for report in reports]
        found = confidence_sequence(shorter[1] - shorter[0], 10_000)
        assert found.low <= 0 <= found.high
    _, other = play_until_decided([player(0.1), player(0.0)], limits, "mean_return")
    assert other.difference.high == pytest.approx(-verdict.difference.low)


def test_equals_play_all_games_and_stay_undecided() -> None:
    reports, verdict = play_until_decided([player(0.0)] * 2, Limits(300), "mean_return")
    assert (verdict.games, verdict.is_decided, tuple(verdict.difference)) == (300, False, (0, 0, 0))
    numbers = [7 * math.sin(n) for n in range(300)]
    assert reports[0].columns[0].values.tolist() == pytest.approx(numbers)  # each game once
    chosen = reports[0].columns[1]
    assert len(chosen.values) == chosen.chosen.sum()
    assert len(chosen.chosen) == 300
    assert reports[0].breakdowns == []
    contest = Contest([Entrant(*each) for each in zip("ab", reports, strict=True)], verdict)
    assert contest.as_dict()["sequential"]["games"] == contest.as_dict()["episodes"] == 300
    assert "return not decided after 300 of at most 300 games" in contest.table()


def test_games_of_hackmatrix_are_told_whole() -> None:
    def scripted(_: object = (), first: int | None = None) -> Report:
        numbers = range(first or 0, (first or 0) + 2)
        accounts = play_games([PlainGame("random", 3, n, 30) for n in numbers])
        return report_of_accounts(accounts, Limits(2, 3, 30, first or 0))

    reports, _ = play_until_decided([scripted] * 2, Limits(2, 3, 30), "win_rate")
    assert [row["game"] for row in reports[0].games] == [0, 1]
    assert reports[0].findings is not None


@pytest.mark.thorough
def test_portions_in_jax_are_numbered_on() -> None:
    agent = resolve("random", None)
    play = jax_player(agent, "CartPole-v1", Limits(4), greedy=False, forbids=False)
    portions = [play((), first) for first in (0, 2)]
    assert [row["game"] for row in portions[1].games] == [2, 3, 4, 5]
    returns = [portion.columns[0].values.tolist() for portion in portions]
    assert returns[0][2:] == returns[1][:2] != returns[0][:2]


@pytest.mark.parametrize(
    ("key", "games", "message"),
    [
        ("colour", 100, "--sequential colour: must be one of mean_return, mean_length"),
        ("mean_good", 100, "--sequential mean_good: must be one of"),
        ("mean_return", 150, "--episodes 150: --sequential looks every 100 games"),
    ],
)
def test_what_can_not_be_tested_is_refused(key: str, games: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        play_until_decided([player(0.0)] * 2, Limits(games), key)
