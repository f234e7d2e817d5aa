"""`benchmarks.coverage`: the intervals hold the truth as often as they say."""

from collections.abc import Sequence

import pytest
from paths import ROOT

from benchmarks.coverage import CoverageOptions, measure


@pytest.mark.slow
def test_the_document_says_what_the_command_gives() -> None:
    told = (ROOT / "docs" / "compare.md").read_text()
    found = measure(CoverageOptions())
    assert min(map(min, found.shares.values())) > 0.9
    sequential, usual = zip(*found.misled.values(), strict=True)
    assert max(sequential) < 0.05
    assert min(usual) > 0.2  # for which the sequence is there
    rows = (
        ("normal scores", "one in five fails", "skewed scores"),
        ("difference, paired", "difference, not paired"),
        ("probability of improvement",),
        ("mean of games", "difference in games"),
    )
    assert {name for row in rows for name in row} == set(found.shares)
    for row in rows:
        assert f"| {'; '.join(_range(found.shares[name]) for name in row)} |" in told
    prose = " ".join(told.split())
    assert f"excludes 0 at any look in {_range(sequential, 0)} of contests" in prose
    assert f"the usual one in {_range(usual, 0)}." in prose


def _range(shares: Sequence[float], places: int = 1) -> str:
    low, high = (f"{100 * share:.{places}f}" for share in (min(shares), max(shares)))
    return f"{low} to {high} %".replace("100.0", "100")
