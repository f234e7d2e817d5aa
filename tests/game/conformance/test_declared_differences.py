"""Section 13: what the recordings of the tests happen not to show is declared all the same."""

import pytest
from recorder import UNDO, WAIT, crowded, recorded, verdicts
from recordings import Raw

from hackmatrix.game.conformance.declared_differences import DeclaredDifference
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import State, Transmission
from hackmatrix.game.rules.enemies import MAX_ENEMIES, EnemyType


def stunned(state: State) -> State:
    for enemy in state.enemies:
        enemy.stunned = True
    return state


@pytest.fixture
def spawn() -> Raw:
    """A turn that ends with a spawn in (0,0); (4,4) and the exit are empty, but in fire."""
    state = stunned(crowded(free={0, 28}))
    state.pending = 1
    raw = recorded(state, 1, action=WAIT)
    assert [t.cell for t in state.transmissions] == [0]
    return raw


def test_a_cell_in_fire_where_one_is_out_of_it(spawn: Raw) -> None:
    spawn["steps"][0]["after"]["transmissions"][0].update(row=4, col=4)
    (verdict,) = verdicts(spawn)
    assert verdict.rules == (DeclaredDifference.SPAWN_CELLS,)


def test_no_spawn_where_three_cells_are_empty(spawn: Raw) -> None:
    spawn["steps"][0]["after"]["transmissions"].clear()
    (verdict,) = verdicts(spawn)
    assert verdict.rules == (DeclaredDifference.SPAWN_CELLS,)


def test_no_spawn_and_another_difference(spawn: Raw) -> None:
    spawn["steps"][0]["after"]["transmissions"].clear()
    spawn["steps"][0]["after"]["turn"] += 1
    (verdict,) = verdicts(spawn)
    assert verdict.failure == "turn: engine 1, recorded 2"


def test_no_spawn_on_a_board_with_room() -> None:
    state = stunned(crowded(free=set(range(12))))
    state.pending = 1
    raw = recorded(state, 1, action=WAIT)
    raw["steps"][0]["after"]["transmissions"].clear()
    (verdict,) = verdicts(raw)
    assert verdict.failure == "spawn_cell: only 0 transmissions are recorded"


def test_more_than_32_enemies() -> None:
    state = stunned(crowded(free={1, 2}))
    state.transmissions = [Transmission(1, 1, EnemyType.DAEMON)]
    raw = recorded(state, 1, action=WAIT)
    after = raw["steps"][0]["after"]
    assert len(after["enemies"]) == MAX_ENEMIES
    (waiting,) = after["transmissions"]
    after["transmissions"] = []
    after["enemies"].append({"type": "daemon", "row": 0, "col": 1, "hp": 3})
    raw["steps"][0]["order"] = [[*range(33)]]
    (verdict,) = verdicts(raw)
    assert verdict.rules == (DeclaredDifference.ENEMY_LIMIT,)
    after["transmissions"] = [waiting]
    assert verdicts(raw)[0].failure


def test_a_game_that_goes_on_after_its_end() -> None:
    state = Game.new(0).state
    raw = recorded(state, 1, action=UNDO)
    assert state.over
    state.over = None
    raw["steps"] += recorded(state, 3)["steps"]
    assert [verdict.rules for verdict in verdicts(raw)] == [
        (),
        *[(DeclaredDifference.AFTER_THE_END,)] * 3,
    ]


def test_a_fault_of_one_state_fails_the_steps_on_both_sides() -> None:
    raw = recorded(Game.new(0).state, 3)
    raw["steps"][1]["after"]["stage"] = 9
    first, second, third = verdicts(raw)
    assert first.failure is None
    assert second.failure == "stage: expected 1..8, got 9"
    assert third.failure == "before: stage: expected 1..8, got 9"
