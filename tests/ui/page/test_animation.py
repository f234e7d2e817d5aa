"""What an action looks and sounds like, in a real browser; and the switch that ends it all."""

import random
from typing import Any

import pytest
from browser import fresh, opened, settled
from suites import first_quickly

from hackmatrix.game.engine import Game

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


def walk_to(kind: str) -> tuple[str, list[int]]:
    """A game, and moves in it, the last of which has an event of a kind."""
    for seed in range(200):
        game, rng, moves = Game.new(seed), random.Random(seed), []
        while not game.state.over and len(moves) < 40:
            moves.append(rng.choice([a for a in game.valid_actions() if a < len(KEYS)]))
            if kind in [event.kind.value for event in game.step(moves[-1]).events]:
                return str(seed), moves
    raise AssertionError(kind)


def after(page: Any, kind: str, speed: str | None) -> list[list[str]]:
    """What was animated and heard of the last move on the way to an event."""
    seed, moves = walk_to(kind)
    fresh(page, seed)
    for step, action in enumerate(moves, 1):
        if step == len(moves):
            if speed is not None:
                page.select_option("#speed", speed)
            page.evaluate("() => { window.shown = []; }")
        page.keyboard.press(KEYS[action])
        settled(page, step)
    shown: list[list[str]] = page.evaluate("() => window.shown")
    page.wait_for_function("() => document.getAnimations().length === 0")
    return shown


@pytest.mark.parametrize("kind", first_quickly(SEEN))
def test_an_action_is_seen_and_heard_and_then_nothing_moves(
    browser: Any, address: str, kind: str
) -> None:
    with opened(browser, address) as page:
        page.evaluate(WATCH)
        shown = after(page, kind, "2")
        assert any(SEEN[kind] <= {*animation} for animation in shown)
        assert ["sound"] in shown
        assert page.locator("#picture .sprites > *").count() == 0
        # One switch ends all of it.
        assert after(page, kind, "0") == []


@pytest.mark.thorough
def test_with_reduced_motion_nothing_is_animated_until_it_is_wanted(
    browser: Any, address: str
) -> None:
    with opened(browser, address, reduced_motion="reduce") as page:
        assert page.input_value("#speed") == "0"
        assert page.evaluate("() => document.getAnimations().length") == 0
        page.evaluate(WATCH)
        assert after(page, "attacked", None) == []
        assert after(page, "attacked", "1") != []
