"""The crowded positions of harder play."""

import pytest

from hackmatrix.game.engine import Game
from hackmatrix.research.bench.env import crowded_position, rich_position


@pytest.mark.parametrize("enemies", [0, 3, 32])
def test_crowded_positions(enemies: int) -> None:
    state = crowded_position(7, 5, enemies)
    assert (state.stage, len(state.enemies), state.transmissions) == (5, enemies, [])
    assert Game.from_dict(Game(state).to_dict()).valid_actions()  # a legal state


def test_rich_positions_are_of_later_stages() -> None:
    states = [rich_position(number) for number in range(100)]
    assert {state.stage for state in states} == set(range(3, 9))
    assert all(len(state.enemies) >= 6 for state in states)
