"""Coverage of the intervals of `hackmatrix compare` and `evaluate`, by simulation."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.command import run_command
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options
from hackmatrix.research.comparison.estimates import (
    differences,
    estimates,
    improvement,
    interquartile_mean,
)
from hackmatrix.research.comparison.held_out import difference, mean
from hackmatrix.research.evaluation.contest import LOOK, confidence_sequence
from hackmatrix.research.evaluation.statistics import Estimate

SEEDS = (2, 3, 5, 10, 20)
_GAIN = 1.0  # standard deviations between two groups
_GAMES = 2_000  # of a contest, at most
_CONTESTS = 2_000
_HELD_OUT = 100  # games

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]


@dataclass(frozen=True)
class CoverageOptions(Options):
    """The options of the command."""

    groups: int = option(10_000, "groups of agents that are drawn for each number", at_least=1)


class Coverage(NamedTuple):
    """The share of intervals that hold the truth."""

    groups: int
    shares: dict[str, list[float]]  # for each number of seeds
    misled: dict[str, tuple[float, float]]  # contests of equals that are decided: see `misled`

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {**self._asdict(), "seeds": SEEDS}

    def text(self) -> str:
        """The figures as text, in Markdown."""
        rows = ["| seeds | " + " | ".join(map(str, SEEDS)) + " |", "|---" * (len(SEEDS) + 1) + "|"]
        for name, shares in self.shares.items():
            rows.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
        rows += [
            "",
            "| differences between equals | sequential | usual interval |",
            "|---|---|---|",
        ]
        for name, found in self.misled.items():
            rows.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in found) + " |")
        return "\n".join([f"95 % intervals of {self.groups:,} groups that hold the truth", *rows])


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return rng.normal(size=shape)


def _often_failing(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Four of five agents learn to score about 10, the others about 2."""
    return rng.normal(np.where(rng.random(shape) < 0.8, 10, 2))


def _skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return rng.exponential(size=shape)


SCORES: dict[str, Draw] = {
    "normal scores": _normal,
    "one in five fails": _often_failing,
    "skewed scores": _skewed,
}


def _held(found: Sequence[Estimate], truth: float) -> float:
    return sum(each.low <= truth <= each.high for each in found) / len(found)


def measure(options: CoverageOptions) -> Coverage:
    """Draws groups of agents whose true scores are known, and looks at their intervals."""
    rng, count = np.random.default_rng(0), options.groups
    shares: dict[str, list[float]] = {}
    for name, draw in SCORES.items():
        truth = float(interquartile_mean(draw(rng, (2_000_000,))))
        shares[name] = [_held(estimates(draw(rng, (count, n)), [n]), truth) for n in SEEDS]
    pairs: dict[str, list[float]] = {
        name: []
        for name in ("difference, paired", "difference, not paired", "probability of improvement")
    }
    for n in SEEDS:
        luck = rng.normal(size=(count, n))
        ours, theirs = (luck + rng.normal(size=(count, n)) for _ in range(2))
        other = np.sqrt(2) * rng.normal(size=(count, n))
        more = ours + np.sqrt(2) * _GAIN
        found = (
            _held(differences(ours, theirs, [n]), 0.0),
            _held(differences(ours, other, [n], [n]), 0.0),
            _held(improvement(more, other, [n], [n]), _above(_GAIN)),
        )
        for row, share in zip(pairs.values(), found, strict=True):
            row.append(share)
    return Coverage(
        count,
        shares | pairs | _of_games(count),
        {name: misled(draw) for name, draw in EQUALS.items()},
    )


def misled(draw: Draw) -> tuple[float, float]:
    """The share of contests of equals in which an interval leaves 0 at any look.

    First that of a confidence sequence, then that of an interval for a fixed number of games.
    """
    rng, found = np.random.default_rng(0), [0, 0]
    for _ in range(_CONTESTS):
        played = draw(rng, (_GAMES,))
        looks = [played[:n] for n in range(LOOK, _GAMES + 1, LOOK)]
        found[0] += any(not _has_0(confidence_sequence(part, _GAMES)) for part in looks)
        usual = (abs(part.mean()) * len(part) ** 0.5 > 1.96 * part.std() for part in looks)
        found[1] += any(usual)
    return found[0] / _CONTESTS, found[1] / _CONTESTS


def _has_0(found: Estimate) -> bool:
    return found.low <= 0 <= found.high


def _wins(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Each of two agents wins 5 % of the games alone."""
    return rng.choice([-1.0, 0.0, 1.0], shape, p=[0.05, 0.9, 0.05])


EQUALS: dict[str, Draw] = {
    "normal": _normal,
    "wins, one game in ten decided": _wins,
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 1,
}


def _of_games(count: int) -> dict[str, list[float]]:
    """The shares of intervals over agents and games, where seeds and games matter alike."""
    rng = np.random.default_rng(0)

    def agents(games: Values, seeds: int) -> Values:
        own = rng.normal(size=(seeds, 1)) / _HELD_OUT**0.5
        return np.asarray(games + own + rng.normal(size=(seeds, _HELD_OUT)))

    means, gains = [], []
    for n in SEEDS:
        held = [
            (agents(games := rng.normal(size=_HELD_OUT), n), agents(games, n)) for _ in range(count)
        ]
        means.append(_held([mean(ours) for ours, _ in held], 0.0))
        gains.append(_held([difference(ours, theirs) for ours, theirs in held], 0.0))
    return {"mean of games": means, "difference in games": gains}


def _above(gain: float) -> float:
    """The probability that a normal value is above another one with a mean this much lower."""
    return NormalDist().cdf(gain / 2**0.5)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "coverage",
        measure,
        CoverageOptions,
        argv,
        purpose="Simulates how often the 95 % intervals of `hackmatrix compare` hold the truth, by "
        "the number of seeds.",
        example="--groups 1000\n      a thousand groups of each number of seeds",
    )


if __name__ == "__main__":
    sys.exit(main())
