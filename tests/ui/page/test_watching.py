"""Watching an agent in a real browser: play, scrub, branch off, take over and hand back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import covered, fresh, opened, served, settled

from hackmatrix.runs.params import save_params

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    rng = np.random.default_rng(3)
    sizes = [(1946, 8), (8, 28), (8, 1)]
    layers = {
        f"Dense_{i}": {"kernel": rng.normal(size=size) / 6, "bias": np.zeros(size[1])}
        for i, size in enumerate(sizes)
    }
    path = Path(tmp_path_factory.mktemp("agent")) / "small.npz"
    save_params(path, {"params": layers}, {"config": {}})
    with served("watch", str(path), "--seed", "8", "--episodes", "2") as it:
        yield it


@pytest.fixture(scope="module")
def watcher(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(watcher: Any) -> Any:
    watcher.select_option("#controls", "small")
    return fresh(watcher, "8")


def test_an_agent_plays_and_its_game_can_be_looked_through(page: Any) -> None:
    assert page.locator("#bars li").count() >= 2
    assert page.locator("#picture .chances path").count() >= 1
    assert "wins" in page.inner_text("#agent-numbers")
    assert "value" not in page.inner_text("#agent-numbers")
    assert page.locator("#graph .return").count() == 0
    assert page.is_hidden("#last")
    page.check("#developer")
    assert "value" in page.inner_text("#agent-numbers")
    assert page.locator("#graph .return").count() == 1
    assert page.is_visible("#last")
    page.uncheck("#developer")
    odds = page.evaluate("hackmatrix.game.odds.get(0)[0]")
    assert page.inner_text("#odds-win") == f"{100 * odds:.0f}\N{NO-BREAK SPACE}%"
    assert page.get_attribute("#odds-bar", "style") == f"height: {100 * odds:g}%;"
    page.keyboard.press("End")
    page.wait_for_function("() => hackmatrix.position.seen.over")
    last = settled(page)
    steps = page.evaluate("hackmatrix.game.nodes.length") - 1
    assert page.inner_text("#step-number") == f"step {steps} of {steps}"
    page.keyboard.press("Home")
    settled(page, 0)
    page.keyboard.press(".")
    assert settled(page, 1)["last"]["by"] == "small"
    page.locator("#scrub").fill(str(steps))
    assert settled(page, steps)["board"] == last["board"]
    page.keyboard.press("Home")
    settled(page, 0)
    falls = page.evaluate(
        "hackmatrix.game.nodes.slice(1).map((n) => [n.parent, "
        "hackmatrix.game.odds.get(n.parent)[0] - hackmatrix.game.odds.get(n.number)[0]])"
    )
    ranked = sorted((node for node in falls if node[1] >= 0.05), key=lambda node: -node[1])
    assert ranked, "a game of a random network has falls"
    for rank, (node, _) in enumerate(ranked[:3], 1):
        page.keyboard.press("/")
        page.wait_for_function(f"() => hackmatrix.game.at === {node}")
        page.wait_for_function(
            f"() => document.getElementById('said').textContent.startsWith('Surprise {rank} of ')"
        )
    # All of them are listed by rank, none of them the win or a stage; a click goes to one.
    rows = page.locator("#falls button")
    assert rows.count() == min(len(ranked), 8)
    rows.first.click()
    page.wait_for_function(f"() => hackmatrix.game.at === {ranked[0][0]}")
    assert rows.first.get_attribute("aria-current") == "true"


def test_the_agents_marks_cover_nothing_that_they_point_at(page: Any) -> None:
    for step in range(1, 5):
        assert page.locator("#picture .chances > *").count() >= 1
        assert covered(page) == 0
        page.keyboard.press("Enter")
        settled(page, step)


def test_taking_over_branches_off_and_the_agent_takes_the_rest(page: Any) -> None:
    for step in (1, 2, 3):
        page.keyboard.press("Enter")
        settled(page, step)
    page.keyboard.press(",")
    shown = settled(page, 2)["agent"]
    ranked = sorted(range(28), key=lambda a: -shown["probabilities"][a])
    taken = page.evaluate("hackmatrix.game.nodes[3].action")
    other = next(i for i, a in enumerate(ranked) if a != taken)
    page.keyboard.press(str(other + 1))
    mine = settled(page, 3)
    assert (mine["last"]["by"], mine["last"]["action"]) == ("you", ranked[other])
    assert "%" in page.inner_text("#verdict")
    assert page.is_visible("#tree")
    if not mine["seen"]["over"]:
        page.keyboard.press("Enter")
        assert settled(page, 4)["last"]["by"] == "small"
    page.keyboard.press("[")
    page.wait_for_function("() => hackmatrix.game.at === 3")


def test_play_goes_on_to_the_next_game(page: Any) -> None:
    page.select_option("#pace", "30")
    page.keyboard.press("Space")
    page.wait_for_function("() => hackmatrix.game.id === '8.1'", timeout=30_000)
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Play"


def test_opinions_can_be_hidden_and_others_asked(page: Any) -> None:
    page.check("#guess")
    assert page.locator("#bars li").count() == 0
    assert page.locator("#picture .chances path").count() == 0
    page.uncheck("#guess")
    assert page.locator("#bars li").count() > 0
    usual = page.viewport_size
    page.set_viewport_size({"width": 1024, "height": 600})
    page.evaluate("scrollTo(0, 0)")
    page.click("#ask-others")
    page.wait_for_function(
        "() => document.getElementById('others').innerText.match(/%/g)?.length === 5"
    )
    assert page.inner_text("#ask-others") == "Ask all"
    names = [line.split("\n")[0] for line in page.locator("#others li").all_inner_texts()]
    assert names == ["small", "raw", "scripted", "exit", "random"]
    box = page.locator("#others").bounding_box()
    assert box["y"] + box["height"] <= 600  # in sight on a low screen
    page.set_viewport_size(usual)
    page.select_option("#controls", "random")
    page.wait_for_function("() => hackmatrix.position.agent.name === 'random'")
    page.check("#hidden")
    page.wait_for_function("() => JSON.stringify(hackmatrix.position.board).includes('hidden')")


def test_agents_that_think_long_are_asked_while_the_game_goes_on(page: Any) -> None:
    page.evaluate("""() => {
      const send = window.sends = WebSocket.prototype.send;
      WebSocket.prototype.send = function (text) { // a search that takes its time
        if (!text.includes('"agent":"exit"')) send.call(this, text);
      };
    }""")
    page.click("#ask-others")
    page.wait_for_function(
        "() => document.getElementById('others').innerText.match(/%/g)?.length === 4"
    )
    assert "exit\n…" in page.inner_text("#others")
    assert page.inner_text("#ask-others") == "Cancel"
    page.keyboard.press("Enter")  # playing goes on, and ends the questions
    page.wait_for_function("() => hackmatrix.game.at === 1")
    assert page.inner_text("#others") == ""
    assert page.inner_text("#ask-others") == "Ask all"
    page.click("#ask-others")
    page.click("#ask-others")
    assert page.inner_text("#ask-others") == "Ask all"
    page.evaluate("() => { WebSocket.prototype.send = window.sends; }")
