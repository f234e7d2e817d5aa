"""One headless browser for all tests of the page, and servers and tabs that they share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import ARGUMENTS, find_browser, opened, served
from page_views import PHONE, at_first
from paths import ROOT
from playwright.sync_api import sync_playwright

from hackmatrix.ui.page.export import _PYODIDE


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


@pytest.fixture(scope="session")
def desktop(browser: Any, address: str) -> Iterator[Any]:
    """The tab of `page`."""
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(desktop: Any) -> Any:
    """A tab that many tests share, as at first: game 7 begins."""
    return at_first(desktop)


@pytest.fixture(scope="session")
def handset(browser: Any, address: str) -> Iterator[Any]:
    """The tab of `phone`."""
    with opened(browser, address, **PHONE) as page:
        yield page


@pytest.fixture
def phone(handset: Any) -> Any:
    """A tab of a phone that many tests share, as at first: game 7 begins."""
    handset.set_viewport_size(PHONE["viewport"])
    return at_first(handset)


@pytest.fixture(scope="session")
def no_pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the names of Pyodide's files, for tests that need no Python in the browser."""
    folder = tmp_path_factory.mktemp("pyodide")
    for file in _PYODIDE:
        (folder / file).touch()
    return folder
