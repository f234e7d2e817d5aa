"""The tutorial in a real browser: six rooms, each done by keys, and the goal of a game."""

from typing import Any

import pytest
from browser import opened, press, settled

KEYS = {0: "ArrowUp", 1: "ArrowDown", 2: "ArrowLeft", 3: "ArrowRight", 4: "s", 12: "r"}
SOLUTIONS = [(0, 3), (3, 3), (2, 2, 4), (3, 4), (12,), (0, 2, 2, 3, 3)]


def outcome(page: Any) -> str:
    return str(page.get_attribute("#goal", "data-outcome"))


def room(page: Any, number: int) -> None:
    page.wait_for_function(
        "(number) => hackmatrix.position.task?.number === number && !hackmatrix.busy", arg=number
    )


@pytest.mark.thorough
def test_a_newcomer_learns_in_six_rooms_and_then_plays(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        assert page.inner_text("#goal-title") == "Stage 1 of 8: reach the exit"
        assert page.locator("#picture .pulse").count() == 1
        page.click(".main:visible")  # the one that stands out
        for number, solution in enumerate(SOLUTIONS):
            room(page, number)
            for step, action in enumerate(solution, 1):
                page.keyboard.press(KEYS[action])
                settled(page, step)
            assert outcome(page) == "done", number
            page.keyboard.press("Enter")
        page.wait_for_function("() => !hackmatrix.position.task && !hackmatrix.busy")
        assert page.is_hidden("#learn")
        assert page.inner_text("#goal-title") == "Stage 1 of 8: reach the exit"
        assert "lesson" not in page.evaluate("() => localStorage.getItem('hackmatrix-games-play')")


def test_a_room_that_is_lost_begins_again_and_can_be_left(page: Any) -> None:
    assert page.inner_text("#goal-title") == "Stage 1 of 8: reach the exit"
    press(page, "#show-rules")
    page.click("#tutorial")
    for number in range(3):
        room(page, number)
        page.click("#task-next")  # skips it
    room(page, 3)
    page.keyboard.press("s")  # too early: nothing is here to siphon
    settled(page, 1)
    assert outcome(page) == "lost"
    page.keyboard.press("Enter")
    settled(page, 0)
    assert outcome(page) == ""
    press(page, "#copy-link")
    assert "no link" in page.inner_text("#problem")
    page.evaluate("() => hackmatrix.drop()")
    page.wait_for_selector("body.lost")
    page.wait_for_selector("body:not(.lost)")
    room(page, 3)
    page.click("#task-leave")
    page.wait_for_function("() => !hackmatrix.position.task")
