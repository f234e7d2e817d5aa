"""The command that a line for the user begins with can be typed there."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from hackmatrix.core.processes.typed_command import command_name

SCRIPTS = Path(sysconfig.get_path("scripts"))


def test_it_is_the_name_where_path_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"/nowhere:{SCRIPTS}")
    assert command_name() == "hackmatrix"


def test_elsewhere_it_is_a_path_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "hackmatrix"
    other.write_text("#!/bin/sh\necho another program\n")
    other.chmod(0o755)
    for path in ("/nowhere", str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        monkeypatch.chdir(SCRIPTS.parent)
        assert command_name() == f"{SCRIPTS.name}/hackmatrix"
        monkeypatch.chdir(tmp_path)
        assert command_name() == str(SCRIPTS / "hackmatrix")
    command = [command_name(), "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("hackmatrix ")
