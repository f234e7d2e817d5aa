"""The rooms of the tutorial: each can be done, and none by going straight to the exit alone."""

import pytest

from hackmatrix.agents.roster.built_in import BUILT_IN
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.game import step
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.ui.session.lessons import LESSONS, progress
from hackmatrix.ui.session.session import Session

LONGEST = 8


def solution(number: int) -> tuple[int, ...]:
    """The fewest actions that do what a room asks."""
    waiting: list[tuple[State, tuple[int, ...]]] = [(LESSONS[number].start(), ())]
    seen = set()
    for state, actions in waiting:
        assert len(actions) < LONGEST, "nothing short does it"
        if repr(state) in seen:
            continue
        seen.add(repr(state))
        for action in valid_actions(state):
            after = copy_state(state)
            step(after, action)
            outcome = progress(number, after)["outcome"]
            if outcome == "done":
                return (*actions, action)
            if outcome is None:
                waiting.append((after, (*actions, action)))
    raise AssertionError("it can't be done")


@pytest.mark.parametrize("number", range(len(LESSONS)))
def test_a_room_is_not_done_at_first_and_can_be_done(number: int) -> None:
    session = Session()
    answer = session.handle({"do": "lesson", "number": number})
    assert answer["task"]["outcome"] is None
    for action in solution(number):
        assert answer["task"]["outcome"] is None
        answer = session.handle({"do": "act", "action": action})
    assert answer["task"]["outcome"] == "done"


@pytest.mark.parametrize("number", [2, 4, 5])
def test_who_only_walks_learns_that_it_is_not_enough(number: int) -> None:
    state = LESSONS[number].start()
    for _ in range(15):
        if progress(number, state)["outcome"]:
            break
        step(state, BUILT_IN["exit"].choose(state, ()))
    assert progress(number, state)["outcome"] == "lost"


def test_a_room_is_no_game_and_a_new_game_leaves_it() -> None:
    session = Session()
    session.handle({"do": "lesson", "number": 1})
    assert "no game" in session.handle({"do": "save"})["error"]
    assert "task" not in session.handle({"do": "new", "seed": "7"})
    assert "error" in session.handle({"do": "lesson", "number": 6})
