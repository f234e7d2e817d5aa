"""Every command line of the documents that this project was built from, as it is typed there.

Each is a real process in a fresh copy of the repository, in the folder that the document names, in
the smallest sizes. The list and what is expected are in `source_lines.yaml`.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import source_documents
import yaml
from documented import made_small
from made_places import Places, copy_of_the_repository, small_experiment
from paths import DOCS, ROOT

LISTED = yaml.safe_load((Path(__file__).parent / "source_lines.yaml").read_text())
LINES: list[dict[str, Any]] = LISTED["lines"]
OURS = [row for row in LINES if "other" not in row]
PAGE = (DOCS / "from-the-original.md").read_text()
needs_documents = pytest.mark.skipif(
    not source_documents.DOCUMENTS.is_dir(), reason="the documents are not in the repository"
)


@needs_documents
def test_the_list_has_every_line_of_the_documents() -> None:
    listed = [source_documents.SourceLine(row["document"], row["line"]) for row in LINES]
    assert listed == source_documents.source_lines()


@needs_documents
def test_the_list_has_every_flag_name_and_metric_of_the_documents() -> None:
    assert LISTED["flags"] == source_documents.source_flags()
    assert LISTED["names"] == source_documents.source_names()
    assert LISTED["metrics"] == source_documents.source_metrics()


def first_cells() -> list[str]:
    """What stands in backquotes in the first column of the tables of docs/from-the-original.md."""
    cells = [row[1] for row in re.finditer(r"^\| ((?:[^|\\]|\\.)*) \|", PAGE, re.M)]
    return [span.replace("\\|", "|") for cell in cells for span in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("row", LINES, ids=lambda row: row["line"][:80])
def test_the_page_says_what_stands_for_a_line(row: dict[str, Any]) -> None:
    line = row["line"].split(" && ")[-1] if row["line"].startswith("cd ") else row["line"]
    line = re.sub(r"^JAX_PLATFORMS=\w+ ", "", line).replace("python3 ", "python ")
    script = line.removeprefix("python ")
    assert any(line.startswith(cell) or script.startswith(cell) for cell in first_cells()), line


@pytest.mark.parametrize("name", [*LISTED["names"], *LISTED["flags"], *LISTED["metrics"]])
def test_the_page_has_every_name(name: str) -> None:
    assert name in first_cells()


def test_every_flag_of_the_documents_is_one_of_train() -> None:
    command = [str(ROOT / ".venv" / "bin" / "hackmatrix"), "train", "--help-all"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [flag for flag in LISTED["flags"] if not re.search(rf"{flag}\b", shown)] == []


def cases() -> Iterator[Any]:
    for row in OURS:
        marks = [pytest.mark.slow] if row.get("slow") else []
        yield pytest.param(row, id=row["line"], marks=marks)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("row", list(cases()))
def test_line(row: dict[str, Any], places: Places, tmp_path: Path) -> None:
    home = tmp_path / "home"
    clone = copy_of_the_repository(home / "hack-matrix")
    folder = home if row["folder"] == "~" else clone / row["folder"]
    for what in row.get("needs", ()):
        prepare(what, folder, places)
    environment = places.environment(ROOT / ".venv" / "bin") | {"HOME": str(home)}
    before, and_then, last = row.get("typed", row["line"]).rpartition("&& ")
    line = before + and_then + made_small(last, row.get("size", ""))
    code, output = run(line, folder, environment, row.get("until"))
    refused = row.get("refused")
    if "without_torch" in row and importlib.util.find_spec("torch") is None:
        refused = row["without_torch"]
    assert "Traceback" not in output, output
    assert "No such file" not in output, output
    if refused is not None:
        assert code in (1, 2), output
        assert re.search(refused, output.splitlines()[-1]), output
        return
    assert code == 0, output
    assert re.search(row.get("prints", ""), output), output
    for pattern in row.get("writes", ()):
        assert any(path.stat().st_size for path in folder.glob(pattern)), f"{pattern}\n{output}"


def prepare(what: str, folder: Path, places: Places) -> None:
    """Puts into a folder what a line needs."""
    if what == "run":
        run_name = places.made("run-name") / "checkpoints" / "run-name"
        shutil.copytree(run_name, folder / "checkpoints" / "run-name")
    elif what == "experiment":
        shutil.copytree(places.made("experiment") / "experiments", folder / "experiments")
    elif what == "data":
        shutil.copytree(places.made("agent-games") / "agent-games", folder / "data")
    elif what == "config":
        (folder / "config" / "my_experiment.yaml").write_text(small_experiment())
    elif what == "model":
        line = "python scripts/train.py --timesteps 64 --run-name MODEL_DIR --no-wandb"
        if importlib.util.find_spec("torch") is not None:
            places.run(folder, line)


def run(line: str, folder: Path, environment: dict[str, str], until: str | None) -> tuple[int, str]:
    """The exit code and output of a line; one that goes on is ended where its output shows it."""
    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        if until is None:
            output, _ = process.communicate(timeout=1000)
            return process.returncode, output
        assert process.stdout is not None
        output, limit = "", threading.Timer(120, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        while not re.search(until, output) and (text := process.stdout.readline()):
            output += text
        limit.cancel()
        if not re.search(until, output):
            return process.wait(), output
        if url := re.search(r"http://\S+", output):
            with urllib.request.urlopen(url[0], timeout=60) as page:
                assert "<html" in page.read().decode()
        return 0, output
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
