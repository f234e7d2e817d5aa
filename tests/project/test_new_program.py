"""A new program of the game takes changes of exactly the files that CONTRIBUTING.md names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import HELPERS, ROOT

# For each file: what is there, and what is put before it.
EDITS = {
    "game/rules/programs.py": [
        (")\n\n\nclass ProgramId", '    Program("PATCH", 1, 0, 1),\n'),
        ("\n\nNUMBER = {", "    PATCH = 23\n"),
    ],
    "game/engine/programs.py": [
        (
            "        case ProgramId.ATK_PLUS:",
            "        case ProgramId.PATCH:\n            player.hp += 1\n",
        ),
        (
            "    ProgramId.HACK: lambda state: any(",
            "    ProgramId.PATCH: lambda state: state.player.hp < PLAYER_HP,\n",
        ),
    ],
    "game/jaxgame/programs.py": [
        (
            "        ProgramId.HACK: cells.siphoned",
            "        ProgramId.PATCH: player.hp < PLAYER_HP,\n",
        ),
        (",\n            energy=saturated(player.energy", " + (number == ProgramId.PATCH)"),
    ],
    "game/drawing/shapes.py": [("}\n\nSHAPES =", '    "PATCH": _filled(_CROSS),\n')],
    "ui/session/descriptions.py": [
        ("}\n\n# Keys", '    "PATCH": ("Restores 1 hp.", "your hp is full"),\n'),
    ],
}


@pytest.fixture
def patched(tmp_path: Path) -> Path:
    """A folder with a copy of the package in which there is one more program."""
    package = tmp_path / "hackmatrix"
    shutil.copytree(ROOT / "hackmatrix", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in EDITS.items():
        text = (package / name).read_text()
        for place, new in edits:
            assert text.count(place) == 1, (name, place)
            text = text.replace(place, new + place)
        (package / name).write_text(text)
    return tmp_path


def run(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, HELPERS / "patched_game.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{HELPERS}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_are_those_that_the_table_names() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text()
    row = re.search(r"^\| a program of the game \|(.*?)\|", table, re.M)
    assert row is not None
    assert set(re.findall(r"`(.*?)`", row[1])) == set(EDITS)


def test_it_is_played_shown_and_observed(patched: Path) -> None:
    run(patched)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_both_engines_play_it_alike(patched: Path) -> None:
    run(patched, "jax")
