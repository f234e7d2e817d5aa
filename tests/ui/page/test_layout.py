"""On a phone: a menu, a sheet for the agent, and previews of what is held."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import opened, settled
from page_views import PHONE, SMALL, TOUCH

pytestmark = pytest.mark.thorough


@pytest.fixture
def watched(browser: Any, watching: str) -> Iterator[Any]:
    """A position at which the agent has something to choose."""
    with opened(browser, watching, **PHONE) as page:
        page.locator("#scrub").fill("200")
        settled(page, 200)
        page.wait_for_selector("#bars li", state="attached")
        yield page


class Finger:
    """A finger on a touch screen, with what the browser makes of it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)

    def _send(self, kind: str, *points: tuple[float, float]) -> None:
        touched = [{"x": x, "y": y} for x, y in points]
        event = {"type": kind, "touchPoints": touched}
        self.session.send("Input.dispatchTouchEvent", event)

    def middle(self, selector: str) -> tuple[float, float]:
        place = self.page.locator(selector)
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def hold(self, selector: str, milliseconds: int = 700) -> None:
        self._send("touchStart", self.middle(selector))
        self.page.wait_for_timeout(milliseconds)
        self._send("touchEnd")

    def swipe(self, selector: str, right: float = 0, down: float = 0) -> None:
        x, y = self.middle(selector)
        self._send("touchStart", (x, y))
        for part in (0.25, 0.5, 0.75, 1.0):
            self._send("touchMove", (x + part * right, y + part * down))
        self._send("touchEnd")


def test_arrows_to_tap_are_there_only_without_a_keyboard(
    page: Any, phone: Any, browser: Any, address: str
) -> None:
    assert page.is_hidden("#pad")
    assert phone.is_visible("#pad")
    with opened(browser, address, **SMALL, **TOUCH) as tablet:
        assert tablet.is_visible("#pad")


def test_a_phones_header_is_one_row_and_its_menu_has_the_rest(phone: Any) -> None:
    assert phone.locator("header").bounding_box()["height"] < 60
    hooks = ["New", "Today", "Puzzles", "My games"]
    assert phone.locator("header > nav button").all_inner_texts() == hooks
    assert phone.locator("header button:visible").count() == 5
    phone.click("#menu")
    assert phone.get_attribute("#menu", "aria-expanded") == "true"
    for name in ("#seed", "#copy-link", "#save", "#load", "#show-rules", "#show-keys"):
        assert phone.is_visible(name)
    phone.keyboard.press("Escape")
    assert phone.is_hidden("#seed")
    phone.click("#menu")
    phone.click("#show-rules")
    assert phone.is_visible("#rules")
    assert phone.is_hidden("#seed")


def test_the_agents_sheet_opens_and_closes_by_tap_swipe_and_key(watched: Any) -> None:
    finger, bars = Finger(watched), watched.locator("#bars")
    assert "wins" in watched.inner_text("#sheet-handle")
    assert bars.is_hidden()
    watched.tap("#sheet-handle")
    assert bars.is_visible()
    assert watched.get_attribute("#sheet-handle", "aria-expanded") == "true"
    watched.tap("#sheet-handle")
    assert bars.is_hidden()
    finger.swipe("#sheet-handle", down=-90)
    bars.wait_for()
    finger.swipe("#sheet-handle", down=90)
    bars.wait_for(state="hidden")
    finger.swipe("#sheet-handle", down=90)
    assert bars.is_hidden()
    watched.focus("#sheet-handle")
    watched.keyboard.press("Enter")
    assert watched.evaluate("document.activeElement.id") == "sheet-body"
    watched.keyboard.press("Tab")
    assert watched.evaluate("document.activeElement.closest('#sheet-body') !== null")
    watched.keyboard.press("Escape")
    assert bars.is_hidden()
    assert watched.evaluate("document.activeElement.id") == "sheet-handle"
    assert watched.get_attribute("#sheet-handle", "aria-expanded") == "false"


def test_holding_a_cell_previews_it_and_takes_no_action(phone: Any) -> None:
    finger, player = Finger(phone), settled(phone)["seen"]["player"]
    own = f"#grid [data-cell='{player['row'] * 6 + player['col']}']"
    finger.hold(own)
    assert phone.locator("#picture .preview .cross").count() >= 3  # it would siphon these
    assert phone.inner_text("#info-title") == "You, 3 of 3 hp"
    assert phone.evaluate("hackmatrix.game.nodes.length") == 1
    phone.tap("#goal-title")
    assert phone.locator("#picture .preview .cross").count() == 0
    phone.tap(own)
    settled(phone, 1)


def test_holding_a_program_previews_it_over_the_board(phone: Any) -> None:
    phone.locator("#rest summary").tap()
    Finger(phone).hold(".program[data-action='8']")
    words = phone.locator("#info-words")
    assert words.inner_text().startswith("WARP")
    assert words.bounding_box()["y"] == 0
    board = phone.locator("#board").bounding_box()
    assert 0 <= board["y"] < 120  # still in sight above the programs
    assert phone.evaluate("hackmatrix.game.nodes.length") == 1
    assert phone.is_hidden("#problem")
    phone.locator("#rest summary").tap()  # ends it


def test_a_swipe_moves_and_neither_presses_nor_holds_a_cell(phone: Any) -> None:
    finger, position = Finger(phone), settled(phone)
    for step in range(1, 5):
        action = next(a for a in range(4) if "why" not in position["actions"][a])
        right, down = [(0, -1), (0, 1), (-1, 0), (1, 0)][action]
        finger.swipe("#grid [data-cell='14']", 60 * right, 60 * down)
        position = settled(phone, step)
        assert position["last"]["action"] == action
    phone.wait_for_timeout(600)
    assert phone.evaluate("hackmatrix.game.nodes.length") == 5
    assert phone.locator("body.held").count() == 0
