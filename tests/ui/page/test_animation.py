"""What an action looks and sounds like, in a real browser; and the switches that end it."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import opened, settled
from page_views import at_first
from suites import first_quickly

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.replay import GameId, Replay

KEYS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")
WATCH = """() => {
  const animate = Element.prototype.animate, start = OscillatorNode.prototype.start;
  window.shown = [];
  Element.prototype.animate = function (frames, ...how) {
    const marks = [...this.querySelectorAll("[class]")].map((mark) => mark.getAttribute("class"));
    window.shown.push([this.id, ...marks, ...frames.flatMap((frame) => Object.keys(frame))]);
    return animate.call(this, frames, ...how);
  };
  OscillatorNode.prototype.start = function (...when) {
    window.shown.push(["sound"]);
    return start.call(this, ...when);
  };
}"""
SEEN = {  # an event, and what an animation must hold to show it
    "attacked": {"beam"},
    "hit": {"picture", "transform"},
    "stage_completed": {"picture", "clipPath"},
}


def walk_to(kind: str) -> tuple[int, list[int]]:
    """A game, and moves in it, the last of which has an event of a kind."""
    for seed in range(200):
        game, rng, moves = Game.new(seed), random.Random(seed), []
        while not game.state.over and len(moves) < 40:
            moves.append(rng.choice([a for a in game.valid_actions() if a < len(KEYS)]))
            if kind in [event.kind.value for event in game.step(moves[-1]).events]:
                return seed, moves
    raise AssertionError(kind)


class Moves:
    """A page in which the last move on the way to an event is taken."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page = page
        self.file = folder / "game.json"
        page.evaluate(WATCH)

    def after(self, kind: str, speed: str) -> list[list[str]]:
        """What is animated and heard of it."""
        seed, (*before, last) = walk_to(kind)
        at_first(self.page)
        self.file.write_text(json.dumps(Replay(GameId(seed), tuple(before)).as_json()))
        self.page.set_input_files("#file", self.file)
        self.page.wait_for_function("(id) => hackmatrix.game.id === id", arg=str(seed))
        settled(self.page, len(before))
        self.page.select_option("#speed", speed)
        self.page.evaluate("() => { window.shown = []; }")
        self.page.keyboard.press(KEYS[last])
        settled(self.page, len(before) + 1)
        shown: list[list[str]] = self.page.evaluate("() => window.shown")
        self.page.wait_for_function("() => document.getAnimations().length === 0")
        return shown


@pytest.fixture(scope="module")
def moves(browser: Any, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moves]:
    with opened(browser, address) as page:
        yield Moves(page, tmp_path_factory.mktemp("moves"))


@pytest.mark.parametrize("kind", first_quickly(SEEN))
def test_an_action_is_seen_and_heard_and_then_nothing_moves(moves: Moves, kind: str) -> None:
    shown = moves.after(kind, "2")
    assert any(SEEN[kind] <= {*animation} for animation in shown)
    assert ["sound"] in shown
    assert moves.page.locator("#picture .sprites > *").count() == 0


@pytest.mark.thorough
def test_one_switch_ends_the_sound_and_another_all_of_it(moves: Moves) -> None:
    moves.page.uncheck("#sound")
    shown = moves.after("attacked", "2")
    assert shown
    assert ["sound"] not in shown
    moves.page.check("#sound")
    assert moves.after("attacked", "0") == []


@pytest.mark.thorough
def test_with_reduced_motion_nothing_is_animated_until_it_is_wanted(
    browser: Any, address: str, tmp_path: Path
) -> None:
    with opened(browser, address, reduced_motion="reduce") as page:
        assert page.input_value("#speed") == "0"
        assert page.evaluate("() => document.getAnimations().length") == 0
        moves = Moves(page, tmp_path)
        assert moves.after("attacked", "1") != []
