"""The page in a real browser: a game by keys, clicks and touch is the engine's game."""

import random
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from browser import begin, fresh, opened, press, served, settled
from PIL import Image

from hackmatrix.game.drawing.picture import board
from hackmatrix.game.drawing.pixels import raster
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import ACTION_NAMES, SIPHON
from hackmatrix.game.rules.board import NEIGHBOUR

MOVES = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served("play", "--seed", "347") as it:
        yield it


@pytest.fixture(scope="module")
def desktop(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(desktop: Any) -> Any:
    return fresh(desktop, "347")


@pytest.fixture(scope="module")
def phone(browser: Any, address: str) -> Iterator[Any]:
    size = {"width": 390, "height": 844}
    with opened(browser, address, viewport=size, has_touch=True, is_mobile=True) as page:
        yield page


def program_key(page: Any, action: int) -> str:
    key: str = page.inner_text(f"[data-action='{action}'] kbd")
    return key.lower()


def link_of(page: Any) -> str:
    """What the page's button Link copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('')")
    press(page, "#copy-link")
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('#seed=')")
    link: str = page.evaluate("navigator.clipboard.readText()")
    return link


def numbers_on_page(page: Any) -> list[str]:
    return [text for text in page.locator(".stats b").all_inner_texts()]  # noqa: C416


def numbers_of(game: Game) -> list[str]:
    state, player = game.state, game.state.player
    spawn = "–" if state.calm else str(max(1, state.next_task - state.turn))
    spawn += f" +{state.pending}" if state.pending else ""
    stage = [f"{state.stage}/8", str(state.turn), spawn, str(player.score)]
    own = (player.credits, player.energy, player.siphons, player.attack)
    return [*stage, *map(str, own)]


def is_shown(page: Any, game: Game) -> None:
    assert numbers_on_page(page) == numbers_of(game)
    assert page.locator(".hp small").inner_text().lower() == f"hp {game.state.player.hp} of 3"


def test_a_game_by_keyboard_is_the_engines_game(page: Any) -> None:
    game, rng = Game.new(347), random.Random(4)
    for step in range(1, 200):
        valid = game.valid_actions()
        # Programs and siphons first, so that all kinds of keys are pressed.
        action = next((a for a in reversed(valid) if a >= SIPHON), rng.choice(valid))
        key = MOVES[action] if action < SIPHON else "s"
        page.keyboard.press(key if action <= SIPHON else program_key(page, action))
        settled(page, step)
        game.step(action)
        is_shown(page, game)
        if game.state.over:
            break
    assert game.state.over == "died"
    assert page.inner_text("#ending").startswith("You died.")
    page.keyboard.press("ArrowUp")
    assert "the game is over" in page.inner_text("#said")


def test_a_game_by_clicks_with_everything_moving(page: Any) -> None:
    game, rng = Game.new(3), random.Random(1)
    begin(page, "3")
    page.wait_for_function("() => hackmatrix.game.id === '3'")
    page.select_option("#speed", "2")
    for step in range(1, 12):
        action = rng.choice(game.valid_actions())
        here = game.state.player.cell
        cell = (*NEIGHBOUR[here], here)[min(action, SIPHON)]
        is_on_board = action <= SIPHON
        page.click(f"[data-cell='{cell}']" if is_on_board else f"[data-action='{action}']")
        settled(page, step)
        game.step(action)
        is_shown(page, game)
        if game.state.over:
            break
    assert page.locator("#picture .piece[data-kind=player]").count() == 1
    assert page.locator("#picture .sprites > *").count() == 0


def test_looking_back_and_playing_on_branches_off(page: Any) -> None:
    first = settled(page)
    valid = [i for i in range(4) if "why" not in first["actions"][i]]
    page.keyboard.press(MOVES[valid[0]])
    settled(page, 1)
    page.keyboard.press(",")
    assert settled(page, 0)["board"] == first["board"]
    page.keyboard.press(MOVES[valid[1]])
    settled(page, 1)
    assert page.is_visible("#tree")
    assert page.evaluate("hackmatrix.game.at") == 2
    page.keyboard.press("[")
    page.wait_for_function("() => hackmatrix.game.at === 1")


def test_a_link_opens_the_same_position_in_another_browser(page: Any, browser: Any) -> None:
    for step in range(1, 4):
        entries = settled(page)["actions"]
        page.keyboard.press(MOVES[next(i for i in range(4) if "why" not in entries[i])])
        settled(page, step)
    page.keyboard.press(",")
    shown = settled(page, 2)
    with opened(browser, link_of(page)) as other:
        there = settled(other, 2)
        assert there["board"] == shown["board"]
        assert other.inner_text("#step-number") == "step 2 of 3"


def test_a_saved_game_opens_again(page: Any, tmp_path: Any) -> None:
    page.keyboard.press("s")
    page.keyboard.press(".")
    with page.expect_download() as download:
        press(page, "#save")
    path = tmp_path / "game.json"
    download.value.save_as(path)
    before = settled(page)
    page.click("#next-game")
    page.wait_for_function("() => hackmatrix.game.id !== '347'")
    page.set_input_files("#file", path)
    page.wait_for_function("() => hackmatrix.game.id === '347'")
    assert settled(page)["board"] == before["board"]
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    page.set_input_files("#file", bad)
    page.locator("#problem", has_text="not a replay").wait_for()


def test_a_lost_connection_comes_back_with_the_game(page: Any) -> None:
    entries = settled(page)["actions"]
    page.keyboard.press(MOVES[next(i for i in range(4) if "why" not in entries[i])])
    before = settled(page, 1)
    page.evaluate("hackmatrix.drop()")
    page.wait_for_selector("body.lost")
    page.wait_for_selector("body:not(.lost)")
    assert settled(page, 1)["board"] == before["board"]
    page.keyboard.press(MOVES[next(i for i in range(4) if "why" not in before["actions"][i])])
    settled(page, 2)


def test_cells_can_be_focused_and_have_labels(page: Any) -> None:
    cells = page.get_by_role("gridcell")
    assert cells.count() == 36
    labels = [cells.nth(i).get_attribute("aria-label") for i in range(36)]
    assert len(set(labels)) == 36
    assert sum("You, 3 of 3 hp." in label for label in labels) == 1
    page.keyboard.press("Shift+ArrowUp")
    first = page.evaluate("document.activeElement.ariaLabel")
    assert "You, 3 of 3 hp." in first
    moves = [("Shift+ArrowUp", 0), ("Shift+ArrowDown", 1)]
    row = settled(page)["seen"]["player"]["row"]
    page.keyboard.press(moves[row == 5][0])
    assert page.evaluate("document.activeElement.ariaLabel") != first
    assert page.inner_text("#info-title")


def test_what_is_told_of_a_cell_under_the_pointer_is_of_the_position_shown(page: Any) -> None:
    position = settled(page)
    action = next(i for i in range(4) if "why" not in position["actions"][i])
    here = position["seen"]["player"]["row"] * 6 + position["seen"]["player"]["col"]
    page.hover(f"#grid [data-cell='{NEIGHBOUR[here][action]}']")
    assert f"{ACTION_NAMES[action]}: You move to" in page.inner_text("#info-text")
    page.keyboard.press(MOVES[action])
    settled(page, 1)
    assert page.inner_text("#info-title") == "You, 3 of 3 hp"
    assert "siphon: " in page.inner_text("#info-text")


def test_what_is_told_of_a_key_that_is_not_possible_ends_with_its_position(page: Any) -> None:
    position = settled(page)
    possible = ["why" not in entry for entry in position["actions"][:4]]
    page.keyboard.press(MOVES[possible.index(False)])
    assert "Not possible" in page.inner_text("#info-text")
    page.keyboard.press(MOVES[possible.index(True)])
    settled(page, 1)
    assert page.get_attribute("#info", "class") == "quiet"
    assert not page.query_selector_all("#board .preview > *, #board [class~=arrow]")


def test_help_opens_and_closes(page: Any) -> None:
    page.keyboard.press("?")
    assert "siphon" in page.inner_text("#key-table")
    assert all(name in page.inner_text("#key-table") for name in ACTION_NAMES[5:])
    page.keyboard.press("Escape")
    press(page, "#show-rules")
    assert "Cryptog" in page.inner_text("#rules-body")


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (320, 640),
        *(pytest.param(*size, marks=pytest.mark.thorough) for size in ((390, 844), (844, 390))),
    ],
)
def test_a_phone_plays_by_touch(phone: Any, width: int, height: int) -> None:
    phone.set_viewport_size({"width": width, "height": height})
    fresh(phone, "347")
    entries = settled(phone)["actions"]
    action = next(i for i in range(4) if "why" not in entries[i])
    phone.tap(f"#pad [data-action='{action}']")
    seen = settled(phone, 1)["seen"]["player"]
    cell = NEIGHBOUR[seen["row"] * 6 + seen["col"]][action ^ 1]
    phone.tap(f"#grid [data-cell='{cell}']")
    settled(phone, 2)
    assert phone.evaluate("document.scrollingElement.scrollWidth") <= width
    phone.tap("#menu")
    for switch in ("#show-rules", "#threat", "#speed", "#wasd"):
        phone.locator(switch).scroll_into_view_if_needed()
        assert phone.is_visible(switch)


@pytest.mark.thorough
def test_the_page_draws_what_films_draw(page: Any) -> None:
    page.uncheck("#threat")
    page.mouse.move(0, 0)
    picture = Image.open(BytesIO(page.locator("#picture").screenshot())).convert("RGB")
    groups = list(board(view(Game.new(347).state)))
    film = raster(groups, (600, 600), 600).resize(picture.size)
    difference = np.abs(np.asarray(picture, float) - np.asarray(film, float))
    assert difference.mean() < 4  # of 255: edges are smoothed in different ways
    assert np.asarray(film, float).std() > 20
