"""Intervals of means: textbook results for many values, exact ones where nothing varies."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from hackmatrix.research.evaluation import statistics
from hackmatrix.research.evaluation.statistics import estimate


def test_for_many_values_it_is_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, size=1_000)
    found = estimate(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_what_never_varies_is_certain() -> None:
    assert estimate(np.full(10, 3.0)) == (3.0, 3.0, 3.0)
    assert estimate(np.array([2])) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("wins", "games", "low", "high"),
    [
        # Wilson's formula, (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), by hand.
        (0, 1_000, 0.0, 0.00383),
        (1_000, 1_000, 0.99617, 1.0),
        (10, 100, 0.05523, 0.17437),
        (1, 1, 0.20655, 1.0),
    ],
)
def test_a_rate_has_a_wilson_interval(wins: int, games: int, low: float, high: float) -> None:
    found = estimate(np.arange(games) < wins)
    assert found.mean == wins / games
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-5), pytest.approx(high, abs=1e-5))
    assert all(type(value) is float for value in found)


def test_the_same_values_give_the_same_interval() -> None:
    values = np.arange(50.0)
    assert estimate(values) == estimate(values)
    assert str(estimate(np.full(2, 0.5))) == "0.500  [0.500, 0.500]"


def test_many_games_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)  # of 40 MB with 100,000 games
    values = np.random.default_rng(3).normal(size=100_000)
    tracemalloc.start()
    estimate(values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_the_module_is_imported_without_scipy() -> None:
    module = "hackmatrix.research.evaluation.statistics"
    code = f"import sys, {module}; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_single_precision_is_summed_in_double() -> None:
    values = np.full(1_000, 0.1, np.float32)
    assert estimate(values).mean == pytest.approx(float(np.float32(0.1)), rel=1e-12)
