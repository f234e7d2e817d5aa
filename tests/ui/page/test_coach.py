"""The coach, keys of the original, colours and sounds, in a real browser."""

import json
from pathlib import Path
from typing import Any

import pytest
from browser import opened, settled
from paths import ROOT

from hackmatrix.agents.roster.judge import judge
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.replay import GameId, Replay, load_replay
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.ui.session.session import Session

pytestmark = pytest.mark.thorough

ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]


def test_a_light_follows_each_move_and_it_is_the_reviews(page: Any) -> None:
    page.check("#coach")
    session = Session(GameId(7), cast(resolve("shipped")), judge=judge, playing=True)
    position = settled(page, 0)
    for step in range(1, 5):
        action = next(a for a in range(4) if "why" not in position["actions"][a])
        page.keyboard.press(ARROWS[action])
        position = settled(page, step)
        session.handle({"do": "act", "action": action})
        ((_, _, cost),) = session.handle({"do": "review", "nodes": [step]})["moves"]
        expected = "good" if cost < 0.02 else "fair" if cost < 0.08 else "bad"
        page.wait_for_selector(f"#light.{expected}")
        assert page.inner_text("#coach-words").startswith("Good" if cost < 0.02 else "That cost")


def test_a_hint_comes_in_three_steps_the_last_names_the_action(page: Any) -> None:
    page.check("#coach")
    session = Session(GameId(7), cast(resolve("shipped")))
    best = session.handle({"do": "others", "agent": "shipped"})["others"][0][1]
    for step, words in enumerate(("Hint 1 of 3", "Hint 2 of 3", "The agent's choice"), 1):
        page.keyboard.press("/")
        page.wait_for_function(
            "(words) => document.getElementById('coach-words').textContent.startsWith(words)",
            arg=words,
        )
        name = page.evaluate("(action) => hackmatrix.look.actions[action]", best)
        assert (name in page.inner_text("#coach-words")) == (step == 3)
    assert page.inner_text("#info-title") == name


def test_without_the_coach_there_is_no_light_and_no_hint(page: Any) -> None:
    page.keyboard.press("/")
    settled(page)
    assert page.is_hidden("#coached")


def test_programs_can_be_run_by_their_place_as_in_the_original(page: Any, tmp_path: Path) -> None:
    replay = load_replay(ROOT / "docs" / "won.json")
    step, owned, place = next(
        (step, state.owned, place)
        for step, state in enumerate(replay.states())
        for place, program in enumerate(state.owned)
        if place > 0 and FIRST_PROGRAM + program in valid_actions(state)
    )
    file = tmp_path / "game.json"
    file.write_text(json.dumps(Replay(replay.game, replay.actions[:step]).as_json()))
    page.locator("#file").set_input_files(file)
    settled(page, step)
    page.check("#places")
    keys = page.locator("#owned kbd").all_inner_texts()
    assert keys == [str(n + 1) for n in range(len(owned))]
    page.keyboard.press(keys[place])
    assert settled(page, step + 1)["last"]["action"] == FIRST_PROGRAM + owned[place]


def test_colours_follow_the_system_until_others_are_chosen(browser: Any, address: str) -> None:
    is_light = "() => document.documentElement.classList.contains('light')"
    with opened(browser, address, color_scheme="light") as page:
        assert page.evaluate(is_light)
        page.select_option("#theme", "dark")
        page.wait_for_selector("html:not(.light) body[data-ready]")
        page.emulate_media(color_scheme="dark")
        page.select_option("#theme", "light")
        page.wait_for_selector("html.light body[data-ready]")
