"""A large board, and on a phone a menu, a sheet for the agent, and previews of what is held."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import fresh, opened, settled
from page_views import (
    DESKTOP,
    LAPTOP,
    OVERLAPS,
    PHONE,
    SMALL,
    TOO_SMALL,
    TOUCH,
    VIEWS,
    at_first,
    violations,
)
from suites import first_quickly

SHARE = """
() => {
  const { width, height, top, bottom } = document.getElementById("board").getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight ? width * height / innerWidth / innerHeight : 0;
}"""


@pytest.fixture(scope="module")
def phone(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, **PHONE) as page:
        yield page


@pytest.fixture(scope="module")
def watched(browser: Any, watching: str) -> Iterator[Any]:
    with opened(browser, watching, **PHONE) as page:
        thinking(page)
        yield page


def thinking(page: Any) -> None:
    """Goes to a position at which the agent has something to choose."""
    page.wait_for_selector("body[data-ready]")
    page.locator("#scrub").fill("200")
    settled(page, 200)
    page.wait_for_selector("#bars li", state="attached")


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

    def swipe(self, selector: str, down: float) -> None:
        x, y = self.middle(selector)
        self._send("touchStart", (x, y))
        for part in (0.25, 0.5, 0.75, 1.0):
            self._send("touchMove", (x, y + part * down))
        self._send("touchEnd")


@pytest.mark.parametrize("view", first_quickly(["play", "watch", "review"], 2))
@pytest.mark.parametrize(
    "screen",
    [DESKTOP, *(pytest.param(s, marks=pytest.mark.thorough) for s in (LAPTOP, SMALL)), PHONE],
)
def test_the_board_takes_forty_percent_of_the_screen(
    browser: Any, address: str, watching: str, view: str, screen: dict[str, Any]
) -> None:
    with opened(browser, watching if view == "watch" else address, **screen) as page:
        if view == "review":
            VIEWS["reviewed"](at_first(page))
            page.evaluate("() => scrollTo(0, 0)")
        assert page.evaluate(SHARE) >= 0.4
        assert page.evaluate(OVERLAPS) == []
        steps = page.locator("#transport").bounding_box()
        if screen in (DESKTOP, LAPTOP, SMALL):
            assert steps["y"] + steps["height"] <= screen["viewport"]["height"]


def test_arrows_to_tap_are_there_only_without_a_keyboard(browser: Any, address: str) -> None:
    for screen, has_arrows in ((SMALL, False), ({**SMALL, **TOUCH}, True), (PHONE, True)):
        with opened(browser, address, **screen) as page:
            assert page.is_visible("#pad") == has_arrows


@pytest.mark.parametrize(
    "size",
    [
        *first_quickly([(844, 390), (320, 640)]),
        *(pytest.param(size, marks=pytest.mark.slow) for size in ((1180, 820), (820, 1180))),
    ],
)
def test_everything_is_large_enough_for_a_finger_on_every_touch_screen(
    browser: Any, watching: str, size: tuple[int, int]
) -> None:
    screen = {"viewport": dict(zip(("width", "height"), size, strict=True)), **TOUCH}
    with opened(browser, watching, **screen) as page:
        thinking(page)
        for part in ("#menu", "#sheet-handle"):
            assert page.evaluate(TOO_SMALL) == []
            if page.is_visible(part):
                page.click(part)
        assert page.evaluate(TOO_SMALL) == []
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_phones_header_is_one_row_and_its_menu_has_the_rest(phone: Any) -> None:
    at_first(phone)
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


@pytest.mark.thorough
def test_the_agents_sheet_opens_and_closes_by_tap_swipe_and_key(watched: Any) -> None:
    finger, bars = Finger(watched), watched.locator("#bars")
    assert "wins" in watched.inner_text("#sheet-handle")
    assert bars.is_hidden()
    watched.tap("#sheet-handle")
    assert bars.is_visible()
    assert watched.get_attribute("#sheet-handle", "aria-expanded") == "true"
    watched.tap("#sheet-handle")
    assert bars.is_hidden()
    finger.swipe("#sheet-handle", -90)
    bars.wait_for()
    finger.swipe("#sheet-handle", 90)
    bars.wait_for(state="hidden")
    finger.swipe("#sheet-handle", 90)
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


def test_a_review_opens_the_sheet_that_has_it(browser: Any, address: str) -> None:
    with opened(browser, address, **PHONE) as page:
        fresh(page, "7")
        for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        page.wait_for_function("() => hackmatrix.game.nodes.length > 1 && !hackmatrix.busy")
        page.keyboard.press("!")
        page.wait_for_selector("#accuracy:not(:empty)")
        assert page.get_attribute("#sheet-handle", "aria-expanded") == "true"


@pytest.mark.thorough
@pytest.mark.parametrize("colours", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_an_open_sheet_leaves_the_board_in_sight_and_is_for_everybody(
    watched: Any, colours: str
) -> None:
    watched.evaluate("() => scrollTo(0, 0)")
    watched.emulate_media(color_scheme=colours)
    watched.reload()
    thinking(watched)
    watched.check("#developer")
    watched.tap("#sheet-handle")
    watched.locator("#player-stats").scroll_into_view_if_needed()
    sheet = watched.locator("#sheet").bounding_box()["y"]
    numbers = watched.locator("#player-stats").bounding_box()
    assert numbers["y"] + numbers["height"] <= sheet
    assert violations(watched) == []
    assert watched.evaluate(TOO_SMALL) == []
    watched.emulate_media(color_scheme="dark")


def test_holding_a_cell_previews_it_and_takes_no_action(phone: Any) -> None:
    page, finger = fresh(phone, "7"), Finger(phone)
    player = settled(page)["seen"]["player"]
    own = f"#grid [data-cell='{player['row'] * 6 + player['col']}']"
    finger.hold(own)
    assert page.locator("#picture .preview .cross").count() >= 3  # it would siphon these
    assert page.inner_text("#info-title") == "You, 3 of 3 hp"
    assert page.evaluate("hackmatrix.game.nodes.length") == 1
    page.tap("#goal-title")
    assert page.locator("#picture .preview .cross").count() == 0
    page.tap(own)
    settled(page, 1)


def test_a_finger_that_moves_holds_nothing(phone: Any) -> None:
    page, finger = fresh(phone, "7"), Finger(phone)
    valid = [i for i in range(2) if "why" not in settled(page)["actions"][i]]
    finger.swipe("#grid [data-cell='14']", 90 if valid[0] else -90)
    settled(page, 1)
    page.wait_for_timeout(600)
    assert page.locator("body.held").count() == 0


def test_holding_a_program_previews_it_over_the_board(phone: Any) -> None:
    page, finger = fresh(phone, "7"), Finger(phone)
    page.locator("#rest summary").tap()
    finger.hold(".program[data-action='8']")
    words = page.locator("#info-words")
    assert words.inner_text().startswith("WARP")
    assert words.bounding_box()["y"] == 0
    board = page.locator("#board").bounding_box()
    assert 0 <= board["y"] < 120  # still in sight above the programs
    assert page.evaluate("hackmatrix.game.nodes.length") == 1
    assert page.is_hidden("#problem")
    page.locator("#rest summary").tap()
