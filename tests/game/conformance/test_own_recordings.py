"""Games of the engine itself, written as recordings of the original, are reproduced.

They hold what the recordings of the original seldom or never do: crowded boards, the limit of 32,
no free cell for a spawn, layouts that fail 100 times, an end on no corner.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import RIGHT, WAIT, crowded, recorded, verdicts
from recordings import Raw
from strategies import legal_states

from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import Transmission
from hackmatrix.game.rules.enemies import MAX_ENEMIES, EnemyType


def assert_reproduced(raw: Raw) -> None:
    for verdict in verdicts(raw):
        assert (verdict.failure, verdict.rules) == (None, ())


@pytest.mark.thorough
@settings(max_examples=60)
@given(legal_states(), st.integers(0, 2**32 - 1))
def test_games_from_any_legal_state(data: dict[str, Any], seed: int) -> None:
    assert_reproduced(recorded(Game.from_dict(data).state, 12, seed))


def test_a_stage_without_blocks() -> None:
    state = crowded(free={1, 6, 8, 9})  # with the player's five cells, and (0,0) is walled in
    raw = recorded(state, 1, action=RIGHT)
    assert state.stage == 2
    assert not state.blocks()
    assert_reproduced(raw)


def test_a_stage_without_cells_for_blocks_and_spawns() -> None:
    state = crowded(free={1, 2})
    state.stage = 6
    raw = recorded(state, 1, action=RIGHT)
    assert len(state.blocks()) == 3
    assert not state.transmissions
    assert_reproduced(raw)


def test_the_limit_of_32() -> None:
    state = crowded(free={1, 2})
    state.transmissions = [Transmission(1, 1, EnemyType.DAEMON)]
    state.pending = 3
    raw = recorded(state, 1, action=WAIT)
    assert len(state.enemies) == MAX_ENEMIES
    assert state.transmissions[0].turns == 1
    assert_reproduced(raw)


def test_a_stage_without_blocks_is_refused_where_every_layout_is_valid() -> None:
    raw = recorded(crowded(free={13, 16}), 1, action=RIGHT)
    for cell in raw["steps"][0]["after"]["cells"]:
        if cell["kind"] in ("data", "program", "question"):
            cell.update(kind="empty", points=0, spawn=0, program=0, is_data=False, credits=1)
    (verdict,) = verdicts(raw)
    assert verdict.failure
