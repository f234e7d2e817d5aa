"""Settings of the documentation site, which `make docs` builds with Sphinx."""

import os
import re
import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from hackmatrix.core.version import __version__
from hackmatrix.game.rules import layout_tables
from hackmatrix.learning.reporting import metric_tables

DOCS = Path(__file__).parent
ROOT = DOCS.parent
TABLES = layout_tables.TABLES | metric_tables.TABLES
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = {"index": "README.md", "contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}

project = "HackMatrix"
author = "hackmatrix contributors"
copyright = f"2026, {author}"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"HackMatrix {release}"
GAME = ROOT / "build" / "game"  # holds `play/`, the page as static files, where `make docs` made it
html_extra_path = [str(GAME)] if GAME.exists() else []
PLAY = '\n<a href="play/index.html">Play it in this browser.</a>\n'


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    """Puts files and tables into their pages, and lets links lead where a site has them."""
    del app
    folder = (DOCS / name).parent
    if name in PAGES:
        folder = ROOT
        source[0] = f"{(ROOT / PAGES[name]).read_text()}\n{source[0]}"
    if name == "page" and GAME.exists():
        source[0] = source[0].replace("\n", PLAY, 1)
    source[0] = re.sub(r"<!-- table: (\w+) -->", lambda found: TABLES[found[1]](), source[0])
    text = re.sub(r'<img src="(\S+)".*?alt="(.*?)">', r"![\2](\1)", source[0])
    source[0] = re.sub(
        r"\[([^]]*)\]\(([^():#\s]+)(#[^)\s]*)?\)",
        lambda found: _link(*found.groups(default=""), folder, (DOCS / name).parent),
        text,
    )


def _link(words: str, file: str, place: str, folder: Path, page: Path) -> str:
    """A link in a file of a folder, as a page of the site has it: its words if it leads nowhere."""
    target = _target(folder, file, page)
    return words if ".invalid/" in target else f"[{words}]({target}{place})"


def _target(folder: Path, link: str, page: Path) -> str:
    """The address of a file in a folder, from a page of the site."""
    path = Path(os.path.normpath(folder / link))
    for name, file in PAGES.items():
        if path == ROOT / file:
            path = DOCS / f"{name}.md"
    if path.is_relative_to(DOCS) or path.suffix in {".gif", ".png", ".svg"}:
        return os.path.relpath(path, page)
    return f"{PROJECT['urls']['Repository']}/blob/main/{path.relative_to(ROOT)}"


def setup(app: Sphinx) -> None:
    """Sphinx's call at the start."""
    app.connect("source-read", _read)
    app.add_lexer("jsonl", TextLexer)
