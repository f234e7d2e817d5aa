"""Wins in a row, the measure of the original: points count only in a game that is won.

The original ranks its games by wins and then by score, and 868-HACK, its model, by the sum of the
scores of consecutive wins. Of an agent that wins the share p of its games and m points in each, a
streak lasts p / (1 - p) games and is worth p / (1 - p) x m points on average. That is the sum of
the points of its won games divided by the number of its other games: a game that is cut off ends a
streak too.

All intervals are percentile bootstraps over the games; see `statistics.py`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.research.evaluation.statistics import Estimate, bootstrap, estimate, interval

_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


class Streaks(NamedTuple):
    """The figures of N games in the order of their numbers; NaN is what nobody can know.

    The interval of the longest streak is what as many other games may show. A streak that no game
    ends has no expected score: it is infinite, and its interval only has a lower end.
    """

    points: Estimate  # the score of a won game; NaN if none was won
    longest: Estimate  # wins in a row
    score: Estimate  # expected score of a streak

    def as_dict(self) -> dict[str, Any]:
        """The part of `--json`."""
        told: dict[str, Any] = {}
        for key, (mean, low, high) in zip(FIGURES, self, strict=True):
            told |= {key: mean, f"{key}_ci": [low, high]}
        return told


# Titles of the figures by their keys.
FIGURES = {
    "points_a_win": "points a win",
    "longest_streak": "longest streak",
    "expected_streak_score": "streak score",
}


def streaks_of(won: NDArray[np.bool_], score: NDArray[Any]) -> Streaks:
    """The figures of games, by their ends: bool[N] and numbers [N], N >= 1."""
    every = np.arange(len(won))[None]
    resamples = bootstrap(len(won), lambda games: _figures(won[games], score[games]))
    found = _estimate(_figures(won[every], score[every])[0], resamples)
    if not won.all():
        return found
    rate = estimate(won).low  # resamples can't show a loss that has not happened yet
    return found._replace(score=found.score._replace(low=found.points.low * rate / (1 - rate)))


def difference(
    one: tuple[NDArray[np.bool_], NDArray[Any]], other: tuple[NDArray[np.bool_], NDArray[Any]]
) -> Streaks:
    """The paired difference of two agents on the same games, the first's figures less the other's.

    Args:
        one: the ends of its games, as for `streaks_of`.
        other: likewise.
    """

    def less(games: NDArray[np.int64]) -> NDArray[np.float64]:
        ours, theirs = (_figures(won[games], score[games]) for won, score in (one, other))
        with np.errstate(invalid="ignore"):  # infinity less infinity is not known
            return ours - theirs

    every = np.arange(len(one[0]))[None]
    return _estimate(less(every)[0], bootstrap(len(one[0]), less))


def _estimate(values: NDArray[np.float64], resamples: NDArray[np.float64]) -> Streaks:
    """The figures [3], with the intervals of their resamples [R, 3]."""
    pairs = zip(values.tolist(), resamples.T, strict=True)
    return Streaks(*(_UNKNOWN if math.isnan(x) else Estimate(x, *interval(s)) for x, s in pairs))


def _figures(won: NDArray[np.bool_], score: NDArray[Any]) -> NDArray[np.float64]:
    """The fields of `Streaks` without intervals, float64[R, 3], of R rows of N games."""
    points = np.where(won, score, 0).sum(axis=1, dtype=np.float64)
    wins = won.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_wins, of_streaks = points / wins, points / (won.shape[1] - wins)
    return np.stack([of_wins, _longest(won), of_streaks], axis=1)


def _longest(won: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The largest number of wins in a row of each row of games."""
    place = np.arange(1, won.shape[1] + 1)
    last_other = np.maximum.accumulate(np.where(won, 0, place), axis=1)
    longest: NDArray[np.int64] = (place - last_other).max(axis=1)
    return longest
