"""Every view of the page on every screen: for everybody, for fingers, no text over another."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import opened, settled
from page_views import DESKTOP, OVERLAPS, PHONE, SMALL, TOO_SMALL, VIEWS, at_first, violations
from suites import first_quickly

SCREENS = {
    "a desktop": DESKTOP,
    "a small laptop in light colours": {**SMALL, "color_scheme": "light"},
    "a phone": PHONE,
    "a phone in light colours": {**PHONE, "color_scheme": "light"},
}
# The smallest, then another size in other colours, then all of them.
LONGER = {
    "a desktop": "slow",
    "a small laptop in light colours": "thorough",
    "a phone in light colours": "slow",
}
QUICKLY = [
    pytest.param(name, marks=getattr(pytest.mark, LONGER[name])) if name in LONGER else name
    for name in SCREENS
]


@pytest.fixture(scope="module", params=QUICKLY)
def screen(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, **SCREENS[request.param]) as page:
        yield page


def is_for_everybody(page: Any) -> None:
    assert violations(page) == []
    page.evaluate("() => scrollTo(0, 0)")
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    if page.evaluate("matchMedia('(pointer: coarse)').matches"):
        assert page.evaluate(TOO_SMALL) == []


@pytest.mark.parametrize("view", first_quickly(VIEWS, 2))
def test_a_view_is_for_everybody(screen: Any, view: str) -> None:
    VIEWS[view](at_first(screen))
    is_for_everybody(screen)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", QUICKLY)
def test_watching_is_for_everybody(browser: Any, watching: str, kind: str) -> None:
    with opened(browser, watching, **SCREENS[kind]) as page:
        is_for_everybody(page)  # the end
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
        page.click("#ask-others")
        page.wait_for_selector("#others li")
        is_for_everybody(page)
