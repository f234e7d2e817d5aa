"""One headless browser for all tests of the page."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import ARGUMENTS, find_browser
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = find_browser()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()
