"""Documents say what the code does: tables are generated from it, examples are run."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import DOCS, ROOT

from benchmarks.figures import TABLES, table, with_table
from hackmatrix.cli.main import main
from hackmatrix.game.rules import observation as layout
from hackmatrix.game.rules import tactical
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import Channel
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.learning.settings.config_file import read_config


def record_tables() -> str:
    """The layout of the compact record as docs/environment.md shows it."""
    fields = ["| byte | bits | field | up to | meaning |", "|---|---|---|---|---|"]
    for field in layout.FIELDS:
        of_cells = field.byte in layout.PLANE
        byte = f"{layout.PLANE[field.byte]} + c" if of_cells else layout.BYTE[field.byte]
        bits = span(field.first, field.width)
        named = f"`{field.byte}`, {byte} | {bits} | `{field.name}`"
        fields.append(f"| {named} | {field.largest} | {field.meaning} |")
    numbers = ["| number | bytes | meaning |", "|---|---|---|"]
    for number in layout.NUMBERS:
        bytes_ = span(layout.BYTE[number.name], number.size)
        numbers.append(f"| `{number.name}` | {bytes_} | {number.meaning} |")
    return "\n".join([*fields, "", *numbers])


def feature_table() -> str:
    """The float layouts as docs/environment.md shows them."""
    first_cell = layout.PLAYER_FEATURES + len(PROGRAMS)
    first_extra = layout.CLASSIC_SIZE + CELLS * layout.EXTRA_CELL_FEATURES
    affordable = layout.FEATURE_SIZE["full"] - len(PROGRAMS)
    rows = [
        "| feature | number |",
        "|---|---|",
        *channel_rows(layout.PLAYER_CHANNELS, 0),
        f"| {span(layout.PLAYER_FEATURES, len(PROGRAMS))} | 1 for each program owned |",
        *channel_rows(layout.CELL_CHANNELS, 0, f"{first_cell} + {layout.CELL_FEATURES} c + "),
        *channel_rows(
            layout.EXTRA_CELL_CHANNELS,
            0,
            f"{layout.CLASSIC_SIZE} + {layout.EXTRA_CELL_FEATURES} c + ",
        ),
        *channel_rows(layout.EXTRA_CHANNELS, first_extra),
        f"| {span(affordable, len(PROGRAMS))} | 1 for each program owned and affordable |",
    ]
    return "\n".join(rows)


def tactical_table() -> str:
    """The layout `tactical` as docs/environment.md shows it."""
    rows = ["| feature | group | integers | divided by | meaning |", "|---|---|---|---:|---|"]
    for group in tactical.GROUPS:
        place = span(tactical.START[group.name], group.size)
        integers = f"{group.low} to {group.high}"
        rows.append(f"| {place} | `{group.name}` | {integers} | {group.scale} | {group.meaning} |")
    return "\n".join(rows)


def channel_rows(channels: tuple[Channel, ...], start: int, before: str = "") -> list[str]:
    """A row for each of some channels, whose features begin at `start`."""
    starts = layout.channel_starts(channels)
    return [
        f"| {before}{span(start + starts[channel.name], channel.size)} | {in_words(channel)} |"
        for channel in channels
    ]


def in_words(channel: Channel) -> str:
    """A channel's feature of a number: `(stage - 1) / 7`."""
    number = f"({channel.name} - {channel.zero})" if channel.zero else channel.name
    words = f"`{number} / {channel.scale}`" if channel.scale > 1 else f"`{number}`"
    if channel.size > 1:
        words += f", one-hot of 1 to {channel.size}"
    if channel.low is not None:
        words += f", at least {channel.low}"
    if channel.high is not None:
        words += f", at most {channel.high}"
    return f"{words} ({channel.meaning})" if channel.meaning else words


def span(first: int, size: int) -> str:
    """Numbers in a row: `3` or `3-5`."""
    return str(first) if size == 1 else f"{first}-{first + size - 1}"


@pytest.mark.parametrize("table", [record_tables, feature_table, tactical_table])
def test_the_observation_is_documented_as_it_is(table: Callable[[], str]) -> None:
    text = (DOCS / "environment.md").read_text()
    assert table() in text
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
            f"`Box` of uint8[{record}]",
            f"`final_observation` | uint8[{record}]",
            f"`compact`, uint8[{record}]",
            f"`classic`, float32[{classic}]",
            f"`full`, float32[{full}], everything",
            f"`tactical`, float32[{tactical_size}], what",
            f"`classic` has {classic}",
            f"`full` has these and {full - classic} more",
            f"`tactical` has {tactical_size} that",
            f"{in_kb} in the place of {record} bytes",
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
        text = (DOCS / name).read_text()
        assert [phrase for phrase in phrases if phrase not in text] == []


def test_the_agent_of_the_package_is_the_one_that_is_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = json.loads((ROOT / "hackmatrix/agents/shipped/final_params.json").read_text())
    saved = about["config"]
    text = (DOCS / "learning.md").read_text()
    (line,) = re.findall(r"hackmatrix (train --config best .*--seed .*)", text)
    monkeypatch.chdir(ROOT)
    assert main([*line.split(), "--print-config"]) == 0
    printed = tmp_path / "printed.yaml"
    printed.write_text(capsys.readouterr().out)
    settings = read_config(printed)
    differing = {name for name, value in saved.items() if value != plain(settings[name])}
    assert differing == {"tensorboard"}
    run = f"seed {saved['seed']}, {saved['total_timesteps'] // 10**6}M steps"
    verified = (DOCS / "checkpoints.md").read_text()
    assert f"The agent of the package (`--config best`, {run}" in verified
    assert f"mean_return {about['evaluation']['mean_return']:.6g} in" in verified


def plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize("document", TABLES, ids=lambda path: path.stem)
def test_figures_of_a_document_are_those_that_were_measured(document: Path) -> None:
    measured = json.loads((ROOT / "benchmarks" / "figures.json").read_text())
    text = document.read_text()
    assert text == with_table(text, measured, TABLES[document])
    assert table(measured, TABLES[document]) in text


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


def test_the_game_in_the_document_is_the_file() -> None:
    text = (DOCS / "your-environment.md").read_text()
    frog = (DOCS.parent / "examples" / "frog.py").read_text()
    assert f"in full:\n\n```python\n{frog}```\n" in text


@pytest.mark.slow
def test_the_trainer_runs_from_python_as_documented(tmp_path: Path) -> None:
    script = write_example(DOCS / "training.md", tmp_path)
    result = subprocess.run(
        [sys.executable, script], cwd=DOCS.parent / "examples", capture_output=True, text=True
    )
    assert 10 < float(result.stdout) < 15, result.stderr


@pytest.mark.slow
def test_a_network_of_your_own_trains_as_documented(tmp_path: Path) -> None:
    names = run_example(DOCS / "networks.md", tmp_path)
    assert int(names["state"].update) == 2
    assert len(names["report"].games) == 20


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
