"""The coach, keys of the original, colours and sounds, in a real browser."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import fresh, opened, settled
from paths import ROOT

from hackmatrix.agents.roster.judge import judge
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.ui.session.session import Session

ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]


@pytest.fixture(scope="module")
def desktop(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(desktop: Any) -> Iterator[Any]:
    yield fresh(desktop, "7")
    for switch in ("coach", "places"):
        desktop.uncheck(f"#{switch}")


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
    assert Axe().run(page).response["violations"] == []


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
    game, actions, place = owner_of_programs()
    program = FIRST_PROGRAM + game.state.owned[place]
    saved = {"format": "hackmatrix-replay", "version": 1, "seed": "e0.0", "actions": actions}
    file = tmp_path / "game.json"
    file.write_text(json.dumps(saved))
    page.locator("#file").set_input_files(file)
    settled(page, len(actions))
    page.check("#places")
    keys = page.locator("#owned kbd").all_inner_texts()
    assert keys == [str(n + 1) for n in range(len(game.state.owned))]
    page.keyboard.press(keys[place])
    assert settled(page, len(actions) + 1)["last"]["action"] == program


def owner_of_programs() -> tuple[Game, list[int], int]:
    """A game in which programs are owned, its actions, and the place of one that can be run."""
    game, actions = Game.new(EVALUATION_STREAM), list[int]()
    for action in json.loads((ROOT / "docs" / "won.json").read_text())["actions"]:
        runnable = {a - FIRST_PROGRAM for a in game.valid_actions() if a >= FIRST_PROGRAM}
        for place, number in enumerate(game.state.owned[1:], 1):
            if number in runnable:
                return game, actions, place
        game.step(action)
        actions.append(action)
    raise AssertionError("the agent owns programs")


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_can_be_read(browser: Any, address: str, scheme: str) -> None:
    with opened(browser, address, color_scheme=scheme) as page:
        is_light = page.evaluate("() => document.documentElement.classList.contains('light')")
        assert is_light == (scheme == "light")
        assert Axe().run(page).response["violations"] == []
        page.keyboard.press("!")
        page.wait_for_function("() => hackmatrix.position.controls !== null && !hackmatrix.busy")
        assert Axe().run(page).response["violations"] == []
        other = "dark" if is_light else "light"
        page.select_option("#theme", other)
        page.wait_for_function(
            "(wanted) => document.body.dataset.ready"
            " && document.documentElement.classList.contains('light') === wanted",
            arg=other == "light",
        )


@pytest.mark.thorough
def test_a_move_sounds_and_with_the_switch_off_none_does(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        count = """() => {
          window.sounds = 0;
          const real = AudioContext.prototype.createOscillator;
          AudioContext.prototype.createOscillator = function () {
            window.sounds += 1;
            return real.call(this);
          };
        }"""
        page.evaluate(count)
        for step, expected in ((1, True), (2, False)):
            position = settled(page, step - 1)
            before = page.evaluate("() => window.sounds")
            action = next(a for a in range(4) if "why" not in position["actions"][a])
            page.keyboard.press(ARROWS[action])
            settled(page, step)
            assert (page.evaluate("() => window.sounds") > before) == expected
            page.uncheck("#sound")
        page.wait_for_function("() => document.getAnimations().length === 0")
