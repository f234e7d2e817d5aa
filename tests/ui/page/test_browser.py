"""The page in a real browser: a game by keys, clicks and touch is the engine's game."""

import random
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from browser import fresh, press, settled
from page_views import TOO_SMALL
from PIL import Image
from suites import first_quickly

from hackmatrix.game.drawing.picture import board
from hackmatrix.game.drawing.pixels import raster
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import ACTION_NAMES, SIPHON
from hackmatrix.game.rules.board import NEIGHBOUR

MOVES = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")


def program_key(page: Any, action: int) -> str:
    key: str = page.inner_text(f"[data-action='{action}'] kbd")
    return key.lower()


def numbers_of(game: Game) -> list[str]:
    state, player = game.state, game.state.player
    spawn = "–" if state.calm else str(max(1, state.next_task - state.turn))
    spawn += f" +{state.pending}" if state.pending else ""
    stage = [f"{state.stage}/8", str(state.turn), spawn, str(player.score)]
    own = (player.credits, player.energy, player.siphons, player.attack)
    return [*stage, *map(str, own)]


def is_shown(page: Any, game: Game) -> None:
    assert page.locator(".stats b").all_inner_texts() == numbers_of(game)
    assert page.locator(".hp small").inner_text().lower() == f"hp {game.state.player.hp} of 3"


def test_a_game_by_keyboard_is_the_engines_game(page: Any) -> None:
    fresh(page, "347")
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
    game, rng = Game.new(7), random.Random(2)
    page.select_option("#speed", "2")
    for step in range(1, 6):
        action = rng.choice(game.valid_actions())
        here = game.state.player.cell
        cell = (*NEIGHBOUR[here], here)[min(action, SIPHON)]
        is_on_board = action <= SIPHON
        page.click(f"[data-cell='{cell}']" if is_on_board else f"[data-action='{action}']")
        settled(page, step)
        game.step(action)
        is_shown(page, game)
    assert page.locator("#picture .piece[data-kind=player]").count() == 1
    assert page.locator("#picture .sprites > *").count() == 0


def test_cells_can_be_focused_and_have_labels(page: Any) -> None:
    cells = page.get_by_role("gridcell").all()
    labels = {cell.get_attribute("aria-label") for cell in cells}
    assert len(cells) == len(labels) == 36
    assert sum("You, 3 of 3 hp." in label for label in labels) == 1
    page.keyboard.press("Shift+ArrowUp")
    first = page.evaluate("document.activeElement.ariaLabel")
    assert "You, 3 of 3 hp." in first
    row = settled(page)["seen"]["player"]["row"]
    page.keyboard.press("Shift+ArrowDown" if row == 5 else "Shift+ArrowUp")
    assert page.evaluate("document.activeElement.ariaLabel") != first
    assert page.inner_text("#info-title")


def test_what_is_told_of_a_cell_or_a_key_is_of_the_position_shown(page: Any) -> None:
    position = settled(page)
    possible = ["why" not in entry for entry in position["actions"][:4]]
    action = possible.index(True)
    here = position["seen"]["player"]["row"] * 6 + position["seen"]["player"]["col"]
    page.hover(f"#grid [data-cell='{NEIGHBOUR[here][action]}']")
    assert f"{ACTION_NAMES[action]}: You move to" in page.inner_text("#info-text")
    page.keyboard.press(MOVES[action])
    settled(page, 1)
    assert page.inner_text("#info-title") == "You, 3 of 3 hp"
    assert "siphon: " in page.inner_text("#info-text")
    fresh(page, "7")
    page.keyboard.press(MOVES[possible.index(False)])
    assert "Not possible" in page.inner_text("#info-text")
    page.keyboard.press(MOVES[action])
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


@pytest.mark.parametrize("size", first_quickly([(320, 640), (844, 390)]))
def test_a_phone_plays_by_touch(phone: Any, size: tuple[int, int]) -> None:
    width, height = size
    phone.set_viewport_size({"width": width, "height": height})
    entries = settled(phone)["actions"]
    action = next(i for i in range(4) if "why" not in entries[i])
    phone.tap(f"#pad [data-action='{action}']")
    seen = settled(phone, 1)["seen"]["player"]
    cell = NEIGHBOUR[seen["row"] * 6 + seen["col"]][action ^ 1]
    phone.tap(f"#grid [data-cell='{cell}']")
    settled(phone, 2)
    assert phone.evaluate("document.scrollingElement.scrollWidth") <= width
    assert phone.evaluate(TOO_SMALL) == []
    phone.tap("#menu")
    for switch in ("#show-rules", "#threat", "#speed", "#wasd"):
        phone.locator(switch).scroll_into_view_if_needed()
        assert phone.is_visible(switch)
    assert phone.evaluate(TOO_SMALL) == []


@pytest.mark.thorough
def test_the_page_draws_what_films_draw(page: Any) -> None:
    page.uncheck("#threat")
    page.mouse.move(0, 0)
    picture = Image.open(BytesIO(page.locator("#picture").screenshot())).convert("RGB")
    groups = list(board(view(Game.new(7).state)))
    film = raster(groups, (600, 600), 600).resize(picture.size)
    difference = np.abs(np.asarray(picture, float) - np.asarray(film, float))
    assert difference.mean() < 4  # of 255: edges are smoothed in different ways
    assert np.asarray(film, float).std() > 20
