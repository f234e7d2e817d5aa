"""`benchmarks.coverage`: the intervals hold the truth as often as they say."""

import pytest
from paths import ROOT

from benchmarks.coverage import CoverageOptions, measure


def test_95_of_100_intervals_hold_the_truth_however_few_the_seeds() -> None:
    shares = measure(CoverageOptions(groups=500)).shares
    assert len(shares) == 8
    assert min(map(min, shares.values())) > 0.9  # 500 groups leave 2 % of doubt


@pytest.mark.slow
def test_the_document_says_what_the_command_gives() -> None:
    told = (ROOT / "docs" / "compare.md").read_text()
    tables = measure(CoverageOptions()).text().partition("\n")[2].split("\n\n")
    assert len(tables) == 2
    assert [table for table in tables if table not in told] == []
