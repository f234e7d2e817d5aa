"""Documents say what the code does: tables are generated from it, examples are run."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from paths import DOCS, LINEAR, ROOT

from benchmarks import figures
from benchmarks.figures import table, with_table
from hackmatrix.cli.main import main
from hackmatrix.game.rules import observation as layout
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.layout_tables import TABLES
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.learning.algorithms.config import CONFIG_CLASSES, PPOConfig
from hackmatrix.learning.settings.config_file import read_config


def numbers_of(place: str) -> list[int]:
    """The features of a row of a table: `3`, `3-5`, or `33 + 42 c + 0-3` of every cell c."""
    base, step, span = re.fullmatch(r"(?:(\d+) \+ (\d+) c \+ )?([\d-]+)", place).groups()  # type: ignore[union-attr]
    first, last = (int(span.split("-")[end]) for end in (0, -1))
    starts = [int(base) + int(step) * c for c in range(CELLS)] if base else [0]
    return [start + n for start in starts for n in range(first, last + 1)]


@pytest.mark.parametrize("name", ["full", "tactical"])
def test_the_table_of_a_layout_has_each_feature_once(name: str) -> None:
    rows = TABLES[name]().splitlines()[2:]
    numbers = [n for row in rows for n in numbers_of(row.split("|")[1].strip())]
    assert sorted(numbers) == list(range(layout.FEATURE_SIZE[name]))


def test_the_tables_of_observations_are_in_the_document() -> None:
    text = (DOCS / "environment.md").read_text()
    assert re.findall(r"^<!-- table: (\w+) -->$", text, re.M) == list(TABLES)
    assert f"One record of {layout.RECORD_SIZE} bytes" in text


def test_what_a_new_program_takes_is_in_contributing() -> None:
    """Every file that names one of the programs with an effect of its own."""
    package = ROOT / "hackmatrix"
    naming = {
        "*.py": re.compile(r'ProgramId\.HACK\b|"HACK"|^    HACK = ', re.M),
        "*.hpp": re.compile(r"\bHACK\b"),
    }
    files = {
        str(file.relative_to(package))
        for pattern, name in naming.items()
        for file in package.rglob(pattern)
        if name.search(file.read_text())
    }
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.search(r"^\| a program of the game .*\n(\| - .*\n)*", text, re.M)
    assert rows is not None
    named = {name for row in rows[0].splitlines() for name in _code(row.split("|")[2])}
    assert named == files


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_sizes_of_observations_are_documented_as_they_are() -> None:
    classic, full, tactical_size = layout.FEATURE_SIZE.values()
    record = layout.RECORD_SIZE
    in_kb = "{:.1f}, {:.1f} or {:.1f} KB".format(*(4e-3 * n for n in layout.FEATURE_SIZE.values()))
    said = {
        "environment.md": [
            f"`final_observation` | uint8[{record}]",
            f"`compact`, uint8[{record}]",
            f"`classic`, float32[{classic}]",
            f"`full`, float32[{full}], everything",
            f"`tactical`, float32[{tactical_size}], what",
            f"`classic` has {classic} features",
            f"`full` has these and {full - classic} more",
            f"`tactical` has {tactical_size} that",
            f"{in_kb} instead of {record} bytes",
        ],
        "clients.md": [
            f"`classic`: the same as float32[{classic}]",
            f"`full`: float32[{full}]",
            f"`tactical`: float32[{tactical_size}]",
            f"`compact`: uint8[{record}]",
        ],
        "checkpoints.md": [f"{tactical_size} features, {len(PROGRAMS) + 5} actions"],
    }
    for name, phrases in said.items():
        text = " ".join((DOCS / name).read_text().split())
        assert [phrase for phrase in phrases if phrase not in text] == []


def test_the_agent_of_the_package_is_the_one_that_is_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = json.loads((ROOT / "hackmatrix/agents/shipped/final_params.json").read_text())
    saved = about["config"]
    text = (DOCS / "learning.md").read_text()
    (line,) = re.findall(
        r"hackmatrix (train --config further_gpu) --init-from \S+( --seed .*)", text
    )
    line = "".join(line)  # of the last of the runs
    monkeypatch.chdir(ROOT)
    assert main([*line.split(), "--print-config"]) == 0
    printed = tmp_path / "printed.yaml"
    printed.write_text(capsys.readouterr().out)
    settings = read_config(printed)
    # Its facts are of a version in which a run had the settings of every algorithm.
    of_ppo = {field.name for field in fields(PPOConfig)}
    of_others = {
        field.name for config in CONFIG_CLASSES.values() for field in fields(config)
    } - of_ppo
    differing = {
        name
        for name, value in saved.items()
        if name not in of_others and value != plain(settings[name])
    }
    assert differing == {"tensorboard", "save_interval_minutes"}
    run = f"seed {saved['seed']}, {saved['total_timesteps'] // 10**6}M steps"
    verified = (DOCS / "checkpoints.md").read_text()
    assert f"The agent of the package (`--config further_gpu`, {run}" in verified
    assert f"mean_return {about['evaluation']['mean_return']:.6g} in" in verified


def plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize("document", figures.TABLES, ids=lambda path: path.stem)
def test_figures_of_a_document_are_those_that_were_measured(document: Path) -> None:
    measured = json.loads((ROOT / "benchmarks" / "figures.json").read_text())
    text = document.read_text()
    assert text == with_table(text, measured, figures.TABLES[document])
    assert table(measured, figures.TABLES[document]) in text


def write_example(document: Path, folder: Path) -> str:
    """The Python examples of a document one after the other, as a file."""
    examples = re.findall(r"```python\n(.*?)```", document.read_text(), re.S)
    script = folder / "example.py"
    script.write_text("\n".join(examples))
    return str(script)


def run_example(document: Path, folder: Path) -> dict[str, Any]:
    """The names that the Python examples of a document leave."""
    return runpy.run_path(write_example(document, folder))


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    names = run_example(DOCS.parent / "README.md", tmp_path)
    assert names["outcome"].events


@pytest.mark.slow
def test_training_from_python_works_as_documented(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "frog.py", tmp_path)
    script = write_example(DOCS / "training.md", tmp_path)
    result = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    run = tmp_path / result.stdout.splitlines()[-1]
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert 11 < last["train/mean_episode_return"] < 15, result.stderr


@pytest.mark.slow
def test_a_network_of_your_own_trains_as_documented() -> None:
    names = runpy.run_path(str(LINEAR), run_name="__main__")
    assert int(names["state"].update) == 2


def test_links_lead_somewhere() -> None:
    for document in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_files_of_the_repository_that_a_document_names_are_there() -> None:
    path = re.compile(r"`((?:tests|hackmatrix|configs|benchmarks|docs|scripts)/[\w/.-]+)`")
    for document in DOCS.rglob("*.md"):
        missing = [
            name for name in path.findall(document.read_text()) if not (ROOT / name).exists()
        ]
        assert missing == [], document.name
