"""What others meet of the page: its picture in messages, its icon, and the links to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hosting import hosted
from PIL import Image

from hackmatrix.cli.main import main

PUBLIC = "https://play.example/it/"
STRIP = "HackMatrix game e0.0: " + "\N{BLACK LARGE SQUARE}" * 8 + " 0 of 8, score 0"
AT_THE_START = "watch.html#seed=e0.0&line=&step=0"
# Chromium has none on Linux.
WITH_DIALOG = """navigator.share = async (content) => {
  window.shared = content;
  if (window.failure) throw new DOMException("", window.failure);
}"""


class Head(HTMLParser):
    """The metadata of a page by name, and its links by relation."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.facts: dict[str | None, str | None] = {}
        self.links: dict[str | None, str | None] = {}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        if tag == "meta":
            self.facts[has.get("name") or has.get("property")] = has.get("content")
        elif tag == "link":
            self.links[has.get("rel")] = has.get("href")


@pytest.fixture(scope="module")
def sites(no_pyodide: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, Path]:
    """Exported pages by the address that they were exported for."""
    folder = tmp_path_factory.mktemp("sites")
    exported: dict[str | None, Path] = {None: folder / "any", PUBLIC: folder / "public"}
    for address, site in exported.items():
        command = ["page", "--export", str(site), "--pyodide", str(no_pyodide)]
        command += ["--agent", "scripted"]
        assert main([*command, *(["--public-url", address.rstrip("/")] if address else [])]) == 0
    return exported


@contextmanager
def example(browser: Any, address: str, site: Path | None = None, first: str = "") -> Iterator[Any]:
    """The page, painted before Python is there; with `site`, at the address of a host."""
    context = browser.new_context(service_workers="block")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    if site is not None:

        def give(route: Any) -> None:
            route.fulfill(path=site / route.request.url.removeprefix(PUBLIC))

        context.route(f"{PUBLIC}**", give)
    page = context.new_page()
    page.add_init_script(first)
    page.route("**/pyodide/**", lambda _: None)
    page.goto(f"{address}watch.html")
    page.wait_for_selector("body[data-ready]")
    assert page.is_visible("#waking")
    assert page.locator("#picture .piece").count() >= 1
    page.evaluate("navigator.clipboard.writeText('')")
    yield page
    context.close()


def press(page: Any, button: str) -> tuple[str, str]:
    """What a button copies and says. The card with Share is hidden before the end."""
    page.evaluate("document.getElementById('problem').textContent = ''")
    page.dispatch_event(button, "click")
    page.wait_for_function("() => document.getElementById('problem').textContent")
    return page.evaluate("navigator.clipboard.readText()"), page.text_content("#problem")


def test_the_page_has_an_icon_and_says_what_it_is(page: Any) -> None:
    width = page.evaluate(
        """async () => {
          const icon = new Image();
          icon.src = document.querySelector("link[rel=icon]").href;
          await icon.decode();
          return icon.naturalWidth;
        }"""
    )
    assert width > 0
    assert "roguelike" in page.get_attribute("meta[name=description]", "content")


@pytest.mark.parametrize("name", ["index.html", "watch.html"])
def test_an_exported_page_tells_messengers_what_it_is(
    name: str, sites: dict[str | None, Path]
) -> None:
    facts = Head(sites[None] / name).facts
    words = json.loads((sites[None] / "manifest.webmanifest").read_text())["description"]
    assert facts["description"] == facts["og:description"] == words
    assert (facts["og:title"], facts["og:type"]) == ("HackMatrix", "website")
    assert not {"og:image", "og:url"} & set(facts)
    assert "canonical" not in Head(sites[None] / name).links


@pytest.mark.parametrize(("name", "below"), [("index.html", ""), ("watch.html", "watch.html")])
def test_an_export_for_an_address_has_a_picture_there(
    name: str, below: str, sites: dict[str | None, Path]
) -> None:
    head = Head(sites[PUBLIC] / name)
    assert head.links["canonical"] == head.facts["og:url"] == f"{PUBLIC}{below}"
    image = head.facts["og:image"]
    assert image is not None
    picture = Image.open(BytesIO((sites[PUBLIC] / image.removeprefix(PUBLIC)).read_bytes()))
    size = (head.facts["og:image:width"], head.facts["og:image:height"])
    assert (picture.format, *map(str, picture.size)) == ("PNG", *size)
    assert head.facts["twitter:card"] == "summary_large_image"
    assert head.facts["og:image:alt"]


@pytest.mark.parametrize(
    "address",
    [
        "play.example",
        "ftp://play.example",
        "https://",
        "https://play.example/?a=1",
        "https://play.example/#a",
        "https://me:secret@play.example/",
        "https://play.example/a b",
        "https://play.example/index.html",
        "http://127.0.0.1:8000/",
        "http://localhost/",
        "http://[::1",
    ],
)
def test_an_address_that_others_can_not_open_is_one_line(
    address: str, no_pyodide: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["page", "--export", str(tmp_path / "it"), "--pyodide", str(no_pyodide)]
    assert main([*command, "--public-url", address]) == 2
    message = capsys.readouterr().err
    assert "--public-url must be the address of a folder, as https://NAME/play/" in message
    assert (message.count("\n"), list(tmp_path.iterdir())) == (1, [])


def test_on_this_machine_share_copies_no_link_and_link_says_whom_it_serves(
    browser: Any, sites: dict[str | None, Path]
) -> None:
    with hosted(sites[None]) as address, example(browser, address) as page:
        words, said = press(page, "#share-end")
        assert words == STRIP
        assert "without a link" in said
        link, said = press(page, "#copy-link")
        assert link == f"{address}{AT_THE_START}"
        assert said.endswith("It opens on this machine alone.")


def test_on_this_machine_links_lead_to_the_address_of_the_export(
    browser: Any, sites: dict[str | None, Path]
) -> None:
    with hosted(sites[PUBLIC]) as address, example(browser, address) as page:
        assert press(page, "#share-end")[0] == f"{STRIP}\n{PUBLIC}{AT_THE_START}"
        assert press(page, "#copy-link") == (f"{PUBLIC}{AT_THE_START}", "The link is copied.")


def test_at_a_host_links_lead_to_the_page(browser: Any, sites: dict[str | None, Path]) -> None:
    with example(browser, PUBLIC, sites[None]) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.locator("header").bounding_box()["height"] < 60  # one line
        assert press(page, "#share-end")[0] == f"{STRIP}\n{PUBLIC}{AT_THE_START}"


@pytest.mark.thorough
def test_the_dialog_of_the_system_shares_where_there_is_one(
    browser: Any, sites: dict[str | None, Path]
) -> None:
    with example(browser, PUBLIC, sites[None], first=WITH_DIALOG) as page:
        page.dispatch_event("#share-end", "click")
        page.wait_for_function("() => window.shared")
        link = f"{PUBLIC}{AT_THE_START}"
        assert page.evaluate("window.shared") == {"text": STRIP, "url": link}
        page.evaluate("window.failure = 'AbortError'")  # somebody closed it
        page.dispatch_event("#share-end", "click")
        page.wait_for_timeout(200)  # milliseconds in which it would copy
        assert page.evaluate("navigator.clipboard.readText()") == ""
        page.evaluate("window.failure = 'NotAllowedError'")
        assert press(page, "#share-end")[0] == f"{STRIP}\n{link}"
    takes_files = f"{WITH_DIALOG}; navigator.canShare = ({{ files }}) => files.length === 1;"
    with hosted(sites[None]) as address, example(browser, address, first=takes_files) as page:
        page.dispatch_event("#share-end", "click")
        page.wait_for_function("() => window.shared")
        size = page.evaluate("""async () => {
          const { width, height } = await createImageBitmap(window.shared.files[0]);
          return [width, height];
        }""")
        assert size == [1200, 630]
    with hosted(sites[None]) as address, example(browser, address, first=WITH_DIALOG) as page:
        page.dispatch_event("#share-end", "click")
        page.wait_for_function("() => window.shared")
        assert page.evaluate("window.shared") == {"text": STRIP}
