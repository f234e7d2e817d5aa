"""A copy of the package with changes, to see that a recipe of CONTRIBUTING.md is all it takes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from paths import HELPERS, ROOT

# For each file of the package: what is there, and what is put before it. "" is a file's end.
Edits = Mapping[str, Sequence[tuple[str, str]]]


def patched_package(folder: Path, edits: Edits) -> Path:
    """Makes the folder `hackmatrix` there; returns `folder`."""
    package = folder / "hackmatrix"
    shutil.copytree(ROOT / "hackmatrix", package)
    for name, changes in edits.items():
        file = package / name
        text = file.read_text() if file.exists() else ""
        for place, new in changes:
            if not place:
                text += new
                continue
            assert text.count(place) == 1, (name, place)
            text = text.replace(place, new + place)
        file.write_text(text)
    return folder


def run_patched(folder: Path, *arguments: str | Path) -> str:
    """Runs Python on the package there; returns the output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{HELPERS}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_of_recipe(row: str) -> set[str]:
    """The files that the row of CONTRIBUTING.md's table names."""
    table = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(rf"^\| {re.escape(row)} \|(.*?)\|", table, re.M)
    assert found is not None, row
    return set(re.findall(r"`(.*?)`", found[1]))
