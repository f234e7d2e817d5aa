"""Documents say what the code does: tables are generated from it, examples are run."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import DOCS

from hackmatrix.rules import observation


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


def write_example(document: Path, folder: Path) -> str:
    """The one Python example of a document, as a file."""
    (example,) = re.findall(r"```python\n(.*?)```", document.read_text(), re.S)
    script = folder / "example.py"
    script.write_text(example)
    return str(script)


def run_example(document: Path, folder: Path) -> dict[str, Any]:
    """The names that the one Python example of a document leaves."""
    return runpy.run_path(write_example(document, folder))


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    names = run_example(DOCS.parent / "README.md", tmp_path)
    assert names["outcome"].events


def test_the_game_in_the_document_is_the_file() -> None:
    text = (DOCS / "your-environment.md").read_text()
    frog = (DOCS.parent / "examples" / "frog.py").read_text()
    assert f"in full:\n\n```python\n{frog}```\n" in text


def test_the_trainer_runs_from_python_as_documented(tmp_path: Path) -> None:
    script = write_example(DOCS / "training.md", tmp_path)
    result = subprocess.run(
        [sys.executable, script], cwd=DOCS.parent / "examples", capture_output=True, text=True
    )
    assert 10 < float(result.stdout) < 15, result.stderr


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
