"""Documents say what the code does: tables are generated from it, examples are run."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from hackmatrix.rules import observation

DOCS = Path(__file__).parent.parent / "docs"


def record_table() -> str:
    """The layout of the compact record as docs/environment.md shows it."""
    bits = dict(
        re.findall(r"^\| ([A-Z]+) \| (.*) \|$", observation.__doc__ or "", flags=re.MULTILINE)
    )
    rows = ["| plane | from byte | bits |", "|---|---|---|"]
    rows += [f"| {p} | {getattr(observation, p)} | {bits[p]} |" for p in observation.PLANES]
    rows += ["", "| number | byte |", "|---|---|"]
    rows += [f"| {name} | {at} |" for name, at in observation.BYTE.items()]
    rows += [
        f"| {name} | {at}, {at + 1} (low byte first) |" for name, at in observation.WORD.items()
    ]
    owned = observation.OWNED
    return "\n".join([*rows, f"| owned programs, a bit each | {owned}..{owned + 2} |"])


def test_the_record_is_documented_as_it_is() -> None:
    text = (DOCS / "environment.md").read_text()
    assert record_table() in text
    assert f"One record of {observation.RECORD_SIZE} bytes" in text


def run_example(document: Path, folder: Path) -> dict[str, Any]:
    """The names that the one Python example of a document leaves."""
    (example,) = re.findall(r"```python\n(.*?)```", document.read_text(), re.S)
    script = folder / "example.py"
    script.write_text(example)
    return runpy.run_path(str(script))


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    names = run_example(DOCS.parent / "README.md", tmp_path)
    assert names["outcome"].events


def test_the_example_of_the_environment_runs(tmp_path: Path) -> None:
    names = run_example(DOCS / "environment.md", tmp_path)
    assert names["x"].shape == (8, 1946)
    assert not names["terminated"].any()


@pytest.mark.parametrize("document", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_test_that_the_requirements_name_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (DOCS / "requirements.md").read_text())
    assert len(named) > 40
    for file, function in named:
        text = (DOCS.parent / file).read_text()
        assert f"def {function}(" in text or not function, f"{file}::{function}"
