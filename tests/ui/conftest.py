"""One headless browser for all tests of the page, and servers that its files share."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import ARGUMENTS, find_browser, served
from paths import ROOT
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = find_browser()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where a game is served; each tab has a session of its own."""
    with served("play", "--seed", "7") as it:
        yield it


@pytest.fixture(scope="session")
def watching() -> Iterator[str]:
    """Where a recorded game is watched."""
    with served("watch", str(ROOT / "docs" / "won.json")) as it:
        yield it
