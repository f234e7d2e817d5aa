"""Puzzles, today's game and the ghost, in a real browser."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from browser import settled

from hackmatrix.ui.session.descriptions import PROGRAM_KEYS
from hackmatrix.ui.session.puzzles import load

KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "s", *PROGRAM_KEYS.values()]
PUZZLES = load()


def puzzle_shown(page: Any) -> int:
    page.wait_for_function("() => hackmatrix.position.task?.outcome === null && !hackmatrix.busy")
    return int(page.evaluate("() => hackmatrix.position.task.number"))


@pytest.mark.thorough
def test_a_right_answer_raises_rating_and_row_and_a_wrong_one_ends_it(page: Any) -> None:
    page.evaluate("() => localStorage.removeItem('hackmatrix-puzzles')")
    page.click("#my-games")
    assert "rating 1000" in page.inner_text("#solving")
    page.keyboard.press("Escape")
    page.click("#puzzles")
    first = puzzle_shown(page)
    page.keyboard.press(KEYS[PUZZLES[first].solution])
    page.wait_for_selector("#goal[data-outcome=done]")
    assert "1 in a row" in page.inner_text("#goal-text")
    kept = json.loads(page.evaluate("() => localStorage.getItem('hackmatrix-puzzles')"))
    assert kept["rating"] > 1000
    assert kept["done"] == [first]
    page.keyboard.press("Enter")
    second = puzzle_shown(page)
    assert second != first
    worst = min(PUZZLES[second].worth, key=PUZZLES[second].worth.__getitem__)
    page.keyboard.press(KEYS[worst])
    page.wait_for_selector("#goal[data-outcome=lost]")
    assert "0 in a row" in page.inner_text("#goal-text")
    lower = json.loads(page.evaluate("() => localStorage.getItem('hackmatrix-puzzles')"))
    assert lower["rating"] < kept["rating"]
    assert lower["best"] == 1
    page.click("#task-leave")
    page.wait_for_function("() => !hackmatrix.position.task")


def test_today_is_one_game_for_everybody(page: Any) -> None:
    before = f"{datetime.now(UTC):%Y%m%d}"
    page.click("#daily")
    page.wait_for_function("() => /^20\\d{6}$/.test(hackmatrix.game.id)")
    assert before <= page.evaluate("() => hackmatrix.game.id") <= f"{datetime.now(UTC):%Y%m%d}"


@pytest.mark.thorough
def test_the_ghost_stands_where_the_agent_does(page: Any) -> None:
    page.check("#ghost")
    page.wait_for_selector("#picture .figure", state="attached")
    for key in ("ArrowLeft", "ArrowDown"):
        position = settled(page)
        action = KEYS.index(key)
        if "why" not in position["actions"][action]:
            page.keyboard.press(key)
    settled(page)
    assert page.locator("#picture .figure").count() == 1
    page.uncheck("#ghost")
    assert page.locator("#picture .figure").count() == 0
