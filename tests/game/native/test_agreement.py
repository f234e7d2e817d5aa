"""Agreement with the Python engine beyond lockstep: any legal state, and the recorded games."""

import native_games
import pytest
import recordings
from hypothesis import Phase, given, settings
from strategies import legal_states

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.saving import state_from_dict, state_to_dict
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.text import state_to_text
from hackmatrix.game.rules.actions import ACTION_NAMES, NUM_ACTIONS
from hackmatrix.game.rules.board import Content


def check_actions(state: State, actions: range | list[int]) -> None:
    """Takes each of the actions in the state, in both engines."""
    data = state_to_dict(state)
    games = native_games.NativeBatch([state_from_dict(data) for _ in actions])
    (record, *_), (bits, *_) = games.observations(), games.masks()
    game = Game(state_from_dict(data))
    assert game.observation() == record.tobytes(), state_to_text(state)
    assert sum(1 << action for action in game.valid_actions()) == bits, state_to_text(state)
    parts = games.step(actions)
    after = games.states()
    for place, action in enumerate(actions):
        game = Game(state_from_dict(data))
        outcome = game.step(action)
        shown = f"{state_to_text(state)}{ACTION_NAMES[action]}"
        assert parts[place].tolist() == list(outcome.parts.values()), shown
        wanted = state_to_dict(game.state)
        assert state_to_dict(after[place]) == wanted, shown


@pytest.mark.thorough
@settings(max_examples=15, phases=(Phase.explicit, Phase.generate))
@given(legal_states())
def test_any_legal_state_and_any_action(data: dict) -> None:
    check_actions(state_from_dict(data), range(NUM_ACTIONS))


@pytest.mark.slow
@pytest.mark.timeout(3000)
@settings(max_examples=1500, phases=(Phase.explicit, Phase.generate))
@given(legal_states())
def test_many_legal_states_and_any_action(data: dict) -> None:
    check_actions(state_from_dict(data), range(NUM_ACTIONS))


@settings(max_examples=30)
@given(legal_states(ended=True))
def test_states_are_converted_without_loss(data: dict) -> None:
    state = state_from_dict(data)
    (back,) = native_games.NativeBatch([state]).states()
    assert state_to_dict(back) == state_to_dict(state)


def check_recorded(numbers: range) -> int:
    """Takes the recorded actions of these games at the recorded positions; returns how many."""
    checked = 0
    for number in numbers:
        before = recordings.game(number).initial
        for step in recordings.game(number).steps:
            state, before = before.state, step.after
            if isinstance(state, str) or state.over:
                continue
            positions = [state, *state.saved]
            if any(position.cells[state.exit].content != Content.EXIT for position in positions):
                continue  # the original's UNDO brought back the board of an older stage
            check_actions(state, [step.action])
            checked += 1
    return checked


def test_some_recorded_steps() -> None:
    assert check_recorded(range(0, len(recordings.lines()), 60)) > 200


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_all_recorded_steps() -> None:
    assert check_recorded(range(len(recordings.lines()))) > 25_000
