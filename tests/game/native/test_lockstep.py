"""The native engine and the Python engine play the same games and agree in everything."""

import random
from collections import Counter

import pytest
from lockstep_plans import PLANS, check_coverage, run
from lockstep_play import play
from native_games import NativeBatch

QUICK_GAMES = 4  # of each plan


def test_lockstep() -> None:
    covered: Counter[str] = Counter()
    for number, (start, policy, steps, _, _) in enumerate(PLANS):
        rng = random.Random(number)
        covered += play([start(rng) for _ in range(QUICK_GAMES)], policy, rng, steps, NativeBatch)
    assert covered["games"] == QUICK_GAMES * len(PLANS)
    assert covered["UNDO chain of 4"]
    assert covered["stages laid out"]


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_lockstep_in_full() -> None:
    check_coverage(run(full_run=True, engine=NativeBatch))
