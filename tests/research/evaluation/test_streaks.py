"""Wins in a row, of games whose answers are known."""

import math

import numpy as np
import pytest

from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.accounts import Account, AccountEntry, StageAccount
from hackmatrix.research.evaluation.contest import Contest, Entrant
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Report
from hackmatrix.research.evaluation.streaks import difference, streaks_of

W, L = True, False


def test_four_wins_of_five_points_and_two_losses() -> None:
    won, score = np.array([W, W, L, W, W, L]), np.array([2, 8, 99, 5, 5, 99])
    found = streaks_of(won, score)
    assert found.points.mean == 5  # a lost game's score counts for nothing
    assert found.longest.mean == 2
    assert found.score.mean == pytest.approx((4 / 6) / (2 / 6) * 5)
    for mean, low, high in found:
        assert low <= mean <= high


@pytest.mark.parametrize(
    ("won", "longest"),
    [([W], 1), ([L], 0), ([W, W, L], 2), ([L, W, L, W, W], 2), ([W, L, W], 1), ([L, W, W], 2)],
)
def test_the_longest_streak_may_be_at_either_end(won: list[bool], longest: int) -> None:
    assert streaks_of(np.array(won), np.zeros(len(won))).longest.mean == longest


def test_for_many_games_the_interval_is_that_of_the_delta_method() -> None:
    random = np.random.default_rng(4)
    won, score = random.random(2_000) < 0.9, random.poisson(20, 2_000)
    p, m = won.mean(), score[won].mean()
    variance = m**2 * p / (1 - p) ** 3 / 2_000 + (p / (1 - p)) ** 2 * score[won].var() / won.sum()
    mean, low, high = streaks_of(won, score).score
    assert mean == pytest.approx(p / (1 - p) * m)
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.1)


def test_an_agent_that_never_lost_may_lose_yet() -> None:
    found = streaks_of(np.full(1_000, W), np.full(1_000, 3))
    assert found.score.mean == found.score.high == math.inf
    assert found.score.low == pytest.approx(3 * 0.99617 / 0.00383, rel=0.01)  # Wilson's bound
    assert found.longest == (1_000, 1_000, 1_000)


def test_an_agent_that_never_won_has_no_points_a_win() -> None:
    points, longest, score = streaks_of(np.full(10, L), np.full(10, 7))
    assert all(map(math.isnan, points))
    assert longest == score == (0, 0, 0)


def test_agents_with_the_same_luck_are_paired() -> None:
    random = np.random.default_rng(6)
    won, score = random.random(400) < 0.8, random.poisson(10, 400)
    found = difference((won, score + 2), (won, score))
    assert found.points == pytest.approx((2, 2, 2))
    assert found.longest == (0, 0, 0)
    assert 0 < found.score.low < found.score.mean < found.score.high


def report(*ends: tuple[bool, int]) -> Report:
    def account(won: bool, score: int) -> Account:
        stage = StageAccount(8, AccountEntry(3, 0, 0, 0, 0, 0), 1, 0, 0, cleared=won)
        ending = "won" if won else None
        return Account(b"\0", ending, score, 0, 0, (stage,), (), 0, 0, None)

    return report_of_accounts([account(*end) for end in ends], Limits(len(ends)))


def test_reports_show_them() -> None:
    one, other = report((W, 4), (W, 6), (L, 9)), report((W, 4), (W, 8), (L, 0))
    told = one.as_dict()
    keys = ("points_a_win", "longest_streak", "expected_streak_score")
    assert [told[key] for key in keys] == [5, 2, 10]
    low, high = told["expected_streak_score_ci"]
    assert low <= 10 <= high
    assert [row["streak"] for row in one.games] == [1, 2, 0]
    assert "\nstreak score     10.000  [" in one.table()
    contest = Contest([Entrant("one", one), Entrant("other", other)])
    ahead = contest.as_dict()["agents"][1]["minus_first"]
    assert ahead["expected_streak_score"]["mean"] == 2
    assert "points a win" in contest.table().splitlines()[0]
