"""Quantiles of Student's t distribution are SciPy's."""

import pytest
from scipy import stats

from hackmatrix.core.student_t import reach


@pytest.mark.parametrize("freedom", [*range(1, 12), 30, 99, 1_023])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_reach(confidence: float, freedom: int) -> None:
    expected = stats.t.ppf((1 + confidence) / 2, freedom)
    assert reach(confidence, freedom) == pytest.approx(expected, rel=1e-9)
