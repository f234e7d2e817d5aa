"""Every view of the page on two screens: for everybody, for fingers, no text over another."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import opened, settled
from page_views import OVERLAPS, PHONE, SMALL, TOO_SMALL, VIEWS, at_first, violations
from suites import first_quickly

pytestmark = pytest.mark.thorough

SCREENS = {
    "a phone": PHONE,
    "a small laptop in light colours": {**SMALL, "color_scheme": "light"},
}
SHARE = """
() => {
  const { width, height, top, bottom } = document.getElementById("board").getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight ? width * height / innerWidth / innerHeight : 0;
}"""


@pytest.fixture(scope="module", params=first_quickly(SCREENS))
def screen(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, **SCREENS[request.param]) as page:
        yield page


def is_touched(page: Any) -> bool:
    return bool(page.evaluate("matchMedia('(pointer: coarse)').matches"))


def is_for_everybody(page: Any) -> None:
    assert violations(page) == []
    page.evaluate("() => scrollTo(0, 0)")
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    if is_touched(page):
        assert page.evaluate(TOO_SMALL) == []


def board_is_large(page: Any) -> None:
    assert page.evaluate(SHARE) >= 0.4
    steps = page.locator("#transport").bounding_box()
    assert is_touched(page) or steps["y"] + steps["height"] <= page.viewport_size["height"]


@pytest.mark.parametrize("view", first_quickly(VIEWS, 2))
def test_a_view_is_for_everybody(screen: Any, view: str) -> None:
    VIEWS[view](at_first(screen))
    is_for_everybody(screen)
    if view in ("game_begins", "reviewed"):
        board_is_large(screen)


@pytest.mark.parametrize("kind", SCREENS)
def test_watching_is_for_everybody(browser: Any, watching: str, kind: str) -> None:
    with opened(browser, watching, **SCREENS[kind]) as page:
        is_for_everybody(page)  # the end
        board_is_large(page)
        page.locator("#scrub").fill("200")
        settled(page, 200)
        page.wait_for_selector("#bars li", state="attached")
        page.keyboard.press("2")  # a variation
        page.wait_for_selector("#tree:visible")
        settled(page, 201)
        for switch in ("#developer", "#hidden"):
            page.check(switch)
        if page.is_visible("#sheet-handle"):
            page.click("#sheet-handle")
            page.locator("#player-stats").scroll_into_view_if_needed()
            numbers = page.locator("#player-stats").bounding_box()
            sheet = page.locator("#sheet").bounding_box()
            assert numbers["y"] + numbers["height"] <= sheet["y"]  # with the board above them
        page.click("#ask-others")
        page.wait_for_selector("#others li")
        is_for_everybody(page)
