"""Games are not lost: the page keeps them with their variations; what is typed fast is played."""

import itertools
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import fresh, opened, press, served, settled
from suites import first_quickly
from websockets.sync.client import connect

from hackmatrix.game.engine import Game
from hackmatrix.ui.page.server import MOST_SESSIONS

pytestmark = pytest.mark.thorough

KEYS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")
TREE = """() => {
  const { id, at, nodes } = hackmatrix.game;
  return [id, at, ...nodes.map((node) => [node.parent, node.action])];
}"""
PRESS = """(keys) => {
  for (const key of keys)
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return document.getElementById("said").textContent;
}"""


@pytest.fixture
def newcomer(browser: Any, address: str) -> Iterator[Any]:
    """A browser that has never been here."""
    with opened(browser, address) as page:
        yield page


def walked(page: Any, moves: int = 5) -> Any:
    """The tree of game 347 after some moves, and a variation after the second of them."""
    fresh(page, "347")
    game = Game.new(347)
    for step in range(1, moves + 1):
        action = next(a for a in game.valid_actions() if a < len(KEYS))
        game.step(action)
        page.keyboard.press(KEYS[action])
        settled(page, step)
    page.evaluate("document.activeElement.blur()")
    for step in range(moves - 1, 1, -1):
        page.keyboard.press(",")
        settled(page, step)
    entries, taken = settled(page)["actions"], page.evaluate("hackmatrix.game.nodes[3].action")
    other = next(i for i in range(4) if i != taken and "why" not in entries[i])
    page.keyboard.press(KEYS[other])
    settled(page, 3)
    assert "variation begins" in page.inner_text("#said")
    return page.evaluate(TREE)


def reload(page: Any) -> None:
    page.reload()
    page.wait_for_selector("body[data-ready]")
    settled(page)


def another_game(page: Any) -> None:
    page.click("#next-game")
    page.wait_for_function("() => hackmatrix.game.id !== '347'")


def is_back(page: Any, tree: Any) -> None:
    """Game 347 is shown, with all its variations."""
    page.wait_for_function("() => hackmatrix.game.id === '347'")
    settled(page)
    assert page.evaluate(TREE) == tree


def test_a_game_goes_on_after_a_reload_a_lost_connection_and_another_game(newcomer: Any) -> None:
    page = newcomer
    tree = walked(page)
    reload(page)
    is_back(page, tree)
    assert "goes on" in page.inner_text("#said")
    page.evaluate("hackmatrix.drop()")
    page.wait_for_selector("body.lost")
    page.wait_for_selector("body:not(.lost)")
    is_back(page, tree)
    another_game(page)
    page.click("#my-games")
    assert page.locator("#kept-games li").count() == 1
    page.click("text=Game 347: stage 1, 5 moves, not over")
    is_back(page, tree)
    page.click("#my-games")
    page.click("[aria-label='delete game 347']")
    assert page.locator("#kept-games li button").count() == 0


def test_a_link_has_the_variations_and_is_forgotten_once_it_is_open(
    page: Any, browser: Any
) -> None:
    tree = walked(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(page, "#copy-link")
    page.wait_for_function(
        "() => document.getElementById('problem').textContent.includes('copied')"
    )
    assert "on this machine alone" in page.inner_text("#problem")
    toast, graph = (page.locator(name).bounding_box() for name in ("#problem", "#graph"))
    assert toast["y"] + toast["height"] <= graph["y"]  # it does not cover it
    curves, step = (page.locator(name).bounding_box() for name in ("#graph svg", "#step-number"))
    assert curves["y"] + curves["height"] <= step["y"]
    link = page.evaluate("navigator.clipboard.readText()")
    with opened(browser, link) as other:
        is_back(other, tree)
    another_game(page)
    page.evaluate("(link) => { location.hash = new URL(link).hash; }", link)  # as if pasted
    is_back(page, tree)
    assert "#" not in page.url
    another_game(page)
    settled(page)
    another = page.evaluate("hackmatrix.game.id")
    reload(page)
    assert page.evaluate("hackmatrix.game.id") == another


def test_a_saved_file_has_the_whole_game_wherever_it_is_looked_at(
    page: Any, tmp_path: Path
) -> None:
    walked(page)
    assert page.is_hidden("#past")
    page.keyboard.press("Home")
    settled(page, 0)
    assert page.inner_text("#past-step") == "Step 0 of 3."
    with page.expect_download() as download:
        press(page, "#save")
    path = tmp_path / "game.json"
    download.value.save_as(path)
    saved = json.loads(path.read_text())
    assert len(saved["actions"]) == 3  # the line that is shown: the variation
    assert len(saved["nodes"]) == 6
    tree = page.evaluate(TREE)
    page.click("text=Back to the game")
    settled(page, 3)
    assert page.is_hidden("#past")
    another_game(page)
    page.set_input_files("#file", path)
    is_back(page, tree)
    path.write_text("{}")
    page.set_input_files("#file", path)
    page.locator("#problem", has_text="not a replay").wait_for()


def test_a_server_that_ended_and_is_started_again_gets_the_game_back(browser: Any) -> None:
    page = browser.new_page()
    with served("play") as address:
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        tree = walked(page)
    page.wait_for_selector("body.lost")
    with served("play", port=urlsplit(address).port):
        page.wait_for_selector("body:not(.lost)")
        is_back(page, tree)
        page.keyboard.press("[")  # the new server has the variations too
        page.wait_for_function("(at) => hackmatrix.game.at !== at", arg=tree[1])
        page.close()


def quiet_walk(moves: int) -> tuple[str, list[int]]:
    """A game, and moves to and fro in it that cost no hp."""
    for seed in itertools.count(1):
        game = Game.new(seed)
        there = next(a for a in game.valid_actions() if a < len(KEYS))
        walk = [there if i % 2 == 0 else there ^ 1 for i in range(moves)]
        for action in walk:
            if action not in game.valid_actions():
                break
            game.step(action)
        else:
            if game.state.player.hp == 3:
                return str(seed), walk
    raise AssertionError


@pytest.mark.parametrize("tab", first_quickly(["page", "phone"]))
def test_eight_keys_wait_and_those_beyond_are_told(tab: str, request: Any) -> None:
    page = request.getfixturevalue(tab)
    seed, walk = quiet_walk(12)
    fresh(page, seed)
    page.evaluate(PRESS, [KEYS[action] for action in walk[:9]])  # one is under way
    settled(page, 9)
    page.wait_for_timeout(300)
    assert page.evaluate("hackmatrix.game.nodes.slice(1).map((node) => node.action)") == walk[:9]
    assert "ignored" not in page.inner_text("#said")
    fresh(page, seed)
    told = "3 actions ignored: at most 8 wait."
    assert page.evaluate(PRESS, [KEYS[action] for action in walk]) == told  # at once
    settled(page, 9)
    page.wait_for_timeout(300)
    assert page.evaluate("hackmatrix.game.at") == 9
    assert told in page.inner_text("#said")
    box = page.locator("#said").bounding_box()
    assert box["y"] + box["height"] <= page.viewport_size["height"]
    page.keyboard.press(KEYS[walk[9]])
    settled(page, 10)
    assert "ignored" not in page.inner_text("#said")


def test_a_key_pressed_while_pieces_move_is_played_after_those_that_wait(page: Any) -> None:
    seed, walk = quiet_walk(5)
    fresh(page, seed)
    page.select_option("#speed", "1")
    page.evaluate(PRESS, [KEYS[action] for action in walk[:4]])
    page.wait_for_selector("body.moving")
    page.keyboard.press(KEYS[walk[4]])
    settled(page, 5)
    actions = page.evaluate("hackmatrix.game.nodes.slice(1).map((node) => node.action)")
    assert actions == walk


def hurt_within(before: int, after: int) -> tuple[str, list[int], int]:
    """A game, moves of it, and the step at which hp falls; some more moves are possible then."""
    for seed in itertools.count(1):
        game, rng, moves = Game.new(seed), random.Random(seed), []
        hurt = 0
        while not game.state.over and len(moves) < 10:
            hp = game.state.player.hp
            walking = [action for action in game.valid_actions() if action < len(KEYS)]
            if not walking:
                break
            moves.append(rng.choice(walking))
            game.step(moves[-1])
            if game.state.player.hp < hp and not hurt and len(moves) > before:
                hurt = len(moves)
            if hurt and len(moves) >= hurt + after and not game.state.over:
                return str(seed), moves, hurt
    raise AssertionError


def test_what_waits_is_not_played_after_a_hit(page: Any) -> None:
    seed, moves, hurt = hurt_within(3, 3)
    fresh(page, seed)
    for step, action in enumerate(moves[: hurt - 3], 1):
        page.keyboard.press(KEYS[action])
        settled(page, step)
    page.evaluate(PRESS, [KEYS[action] for action in moves[hurt - 3 : hurt + 3]])
    settled(page, hurt)
    page.wait_for_timeout(300)
    assert settled(page)["seen"]["player"]["hp"] < 3
    assert page.evaluate("hackmatrix.game.nodes.length") == hurt + 1
    assert "3 waiting actions dropped" in page.inner_text("#said")


def test_a_tab_too_many_says_so_and_comes_alive_when_another_is_closed(
    browser: Any, address: str
) -> None:
    origin, place = address.rstrip("/"), address.replace("http", "ws") + "session"
    page = browser.new_page()
    with ExitStack() as tabs:
        for _ in range(MOST_SESSIONS):
            tabs.enter_context(connect(place, origin=origin))  # type: ignore[arg-type]
        page.goto(address)
        page.wait_for_selector("#problem:not([hidden])")
        assert page.inner_text("#problem").startswith(f"{MOST_SESSIONS} tabs are open already")
    page.wait_for_selector("body:not(.loading):not(.lost)")
    page.close()
