"""The C++ engine is built from the numbers of `hackmatrix/game/rules` as they are now."""

import pytest

from hackmatrix.game import native
from hackmatrix.game.native import _native, constants, layout
from hackmatrix.game.rules import programs, stages


def test_question_blocks_are_the_first_of_the_chances() -> None:
    assert (True, *[False] * 9) == stages.QUESTION_CHANCES


def test_sizes_of_the_structs() -> None:
    assert layout.STATE.itemsize == _native.STATE_SIZE
    assert layout.SAVED_POSITIONS.itemsize == _native.SAVED_SIZE


def test_another_cost_makes_another_header(monkeypatch: pytest.MonkeyPatch) -> None:
    assert constants.source_digest() == _native.SOURCE_DIGEST
    first, *others = programs.PROGRAMS
    monkeypatch.setattr(programs, "PROGRAMS", (first._replace(energy=3), *others))
    assert "PROGRAMS[] = {{0, 3, 4}, {0, 2, 4}" in constants.header()
    with pytest.warns(RuntimeWarning, match="`make setup` builds it anew"):
        native.warn_if_stale()
