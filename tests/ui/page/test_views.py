"""Every view of the page on every kind of screen: for everybody, for fingers, nothing over another."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import opened, served
from page_views import DESKTOP, OVERLAPS, PHONE, SMALL, TARGETS, TOO_SMALL, VIEWS, at_first

SCREENS = {
    "a desktop": DESKTOP,
    "a small laptop in light colours": {**SMALL, "color_scheme": "light"},
    "a phone": PHONE,
    "a phone in light colours": {**PHONE, "color_scheme": "light"},
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served("play", "--seed", "7") as it:
        yield it


@pytest.fixture(scope="module", params=SCREENS)
def screen(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, **SCREENS[request.param]) as page:
        yield page


def violations(page: Any) -> list[str]:
    """What axe finds, each with the first thing it finds it at."""
    found = Axe().run(page, options=TARGETS).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


def is_for_everybody(page: Any) -> None:
    assert violations(page) == []
    page.evaluate("() => scrollTo(0, 0)")
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    if page.evaluate("matchMedia('(pointer: coarse)').matches"):
        assert page.evaluate(TOO_SMALL) == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(screen: Any, view: str) -> None:
    VIEWS[view](at_first(screen))
    is_for_everybody(screen)
