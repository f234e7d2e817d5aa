"""The two engines play the same games, step for step, and agree in everything."""

import pytest
from lockstep_plans import check_coverage, run

from hackmatrix.game.rules.actions import ACTION_NAMES


@pytest.mark.thorough
def test_lockstep() -> None:
    covered = run(full_run=False)
    assert covered["games"] >= 300
    assert all(covered[name] >= 5 for name in ACTION_NAMES), covered


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_lockstep_in_full() -> None:
    check_coverage(run(full_run=True))
