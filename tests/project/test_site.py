"""The documentation as a site: it is built without a warning, and its links lead somewhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx")

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The links of a page, and the places that links can name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.places.add(value or "")
            elif name in {"href", "src"} and value is not None:
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "docs", folder]
    built = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


@pytest.mark.thorough
def test_every_page_of_the_documents_is_on_it(site: Path) -> None:
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert all((site / path).with_suffix(".html").is_file() for path in documents)
    assert "HackMatrix" in (site / "index.html").read_text()
    assert "hackmatrix.make" in (site / "api.html").read_text()
    tables = (site / "environment.html").read_text()
    assert all(name in tables for name in ("enemies_seen", "until_task", "go_to_best"))
    assert "A frog on a pond" in (site / "your-environment.html").read_text()


@pytest.mark.thorough
def test_links_lead_to_files_and_places_so_that_it_works_from_disk(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path
            known = pages.get(target)
            if not target.exists() or (known and unquote(to.fragment) not in known.places):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
