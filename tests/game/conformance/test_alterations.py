"""Conformance can fail: a recording altered in one field is refused, whichever field it is."""

import copy
from collections.abc import Iterator
from itertools import islice

import pytest
from alterations import ALTERATIONS, Alteration
from recordings import check_altered, lines, raw_game
from suites import first_quickly

from hackmatrix.game.conformance.check import StepVerdict

SPOTS = 3  # steps on which each is tried, of different games


def altered_steps(alter: Alteration) -> Iterator[tuple[str, StepVerdict]]:
    """Altered steps, one of a game at most, and the verdicts on them."""
    for number in range(len(lines())):
        raw = raw_game(number)
        before = raw["initial"]
        for i, step in enumerate(raw["steps"]):
            altered = copy.deepcopy(step)
            if alter(before, altered):
                yield f"game {number} step {i}", check_altered(number, i, altered)
                break
            before = step["after"]


@pytest.mark.slow
@pytest.mark.parametrize("name", first_quickly(ALTERATIONS, 25))
def test_an_altered_step_is_refused(name: str) -> None:
    alter = ALTERATIONS[name]
    altered = list(islice(altered_steps(alter), SPOTS))
    assert len(altered) == SPOTS
    assert not [spot for spot, verdict in altered if verdict.failure is None]
