"""`benchmarks.coverage`: intervals of few seeds hold the truth less often than they say."""

import pytest
from paths import ROOT

from benchmarks.coverage import CoverageOptions, measure
from hackmatrix.research.comparison.estimates import FEW


def test_intervals_of_few_seeds_are_too_narrow() -> None:
    shares = measure(CoverageOptions(groups=200)).shares
    assert shares[2] < shares[3] < shares[5] < 0.95
    assert all(share > 0.9 for seeds, share in shares.items() if seeds >= FEW)


@pytest.mark.slow
def test_the_document_says_what_the_command_gives() -> None:
    found = measure(CoverageOptions())
    row = " | ".join(f"{share:.1%}" for share in found.shares.values())
    assert f"| {row} |" in (ROOT / "docs" / "compare.md").read_text()
