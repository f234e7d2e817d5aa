"""The review of a game that was played, in a real browser."""

import json
from pathlib import Path
from typing import Any

import pytest
from browser import covered, settled

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.ui.session.session import Session

pytestmark = pytest.mark.thorough

DONE = """
() => !document.getElementById('report').hidden
  && document.getElementById('report-progress').hidden"""


@pytest.fixture
def lost(page: Any, tmp_path: Path) -> tuple[Any, int]:
    """The page with a game in which the player walked to the exit until it died; its steps."""
    walker = Session(GameId(3), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    actions = walker.tree.line(walker.at)
    replay = tmp_path / "game.json"
    replay.write_text(json.dumps(Replay(GameId(3), actions).as_json()))
    page.locator("#file").set_input_files(replay)
    settled(page, len(actions))
    return page, len(actions)


def test_one_key_shows_what_the_moves_cost_and_each_before_it_was_played(
    lost: tuple[Any, int],
) -> None:
    page, steps = lost
    assert page.is_hidden("#agent")
    page.keyboard.press("!")
    page.wait_for_function(DONE)
    assert 0 <= int(page.inner_text("#accuracy").split()[1]) <= 100
    rows = page.locator("#worst-moves button")
    assert 1 <= rows.count() <= 5
    costs = page.evaluate("() => [...hackmatrix.game.reviews.values()].map(([, cost]) => cost)")
    assert len(costs) == steps
    first = rows.nth(0).inner_text()
    assert f"−{100 * max(costs):.0f}" in first
    rows.nth(0).click()
    step = int(first.split(":")[0].split()[1])
    settled(page, step - 1)
    assert "played" in page.inner_text("#bars")
    assert page.locator("#picture .own").count() == 1
    assert page.locator("#picture .agents").count() == 1
    assert covered(page) == 0
    assert page.is_visible("#odds")


@pytest.mark.slow
def test_a_suggestion_says_why_and_nothing_waits_behind_a_hundred_games(
    lost: tuple[Any, int],
) -> None:
    page, steps = lost
    page.click("#review")
    page.wait_for_function(DONE)
    page.keyboard.press(",")
    settled(page, steps - 1)
    page.click(".why >> nth=0")
    page.wait_for_selector("#picture .trail", state="attached")
    assert 1 <= page.locator("#picture .trail-end").count() <= 3
    assert page.inner_text("#said").startswith("16 futures after")
    page.evaluate(COUNT)
    page.evaluate(BOTH)
    page.wait_for_function("() => window.finishingWhenAnswered !== undefined")
    assert page.evaluate("finishingWhenAnswered") <= 1  # the games under way alone
    assert page.locator("#others li").count() >= 4  # with JAX a search, too
    page.wait_for_function("() => finished.textContent.startsWith('100 games')")
    assert page.evaluate("window.finishing") == 4  # speed by counting: 25 games a message
    page.keyboard.press(",")
    settled(page, steps - 2)
    assert page.is_hidden("#finished")


BOTH = """() => {
  const ask = document.getElementById("ask-others");
  document.getElementById("finish-games").click();
  ask.click();
  new MutationObserver(() => {
    if (ask.textContent === "Ask all") window.finishingWhenAnswered ??= window.finishing;
  }).observe(ask, { childList: true });
}"""
COUNT = """() => {
  const send = window.plainSend ??= WebSocket.prototype.send; // tests share the page
  window.finishing = 0;
  WebSocket.prototype.send = function (text) {
    window.finishing += JSON.parse(text).do === "finish";
    return send.call(this, text);
  };
}"""


def test_retry_plays_on_alone_in_a_variation(lost: tuple[Any, int]) -> None:
    page, steps = lost
    page.click("#analyse")
    page.wait_for_function(DONE)
    page.keyboard.press(",")
    settled(page, steps - 1)
    taken = page.evaluate("() => hackmatrix.game.nodes[hackmatrix.game.nodes.length - 1].action")
    page.click("#retry")
    position = settled(page, steps - 1)
    assert position["controls"] is None
    assert page.is_hidden("#agent")
    assert page.is_hidden("#report")
    other = next(a for a in range(4) if a != taken and "why" not in position["actions"][a])
    page.keyboard.press(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"][other])
    settled(page, steps)
    assert page.evaluate("() => hackmatrix.game.nodes[hackmatrix.game.at].by") == "you"
    assert page.is_visible("#tree")
