"""The command as it can be typed, and the parent of a training process."""

import subprocess
import sysconfig
from pathlib import Path

import pytest
from paths import HELPERS

from hackmatrix.core.processes import RESTART_ME, command_name, supervise

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


@pytest.fixture(autouse=True)
def _children_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HELPERS))


@pytest.mark.parametrize(
    ("what", "code", "told"),
    [
        ("0", 0, ""),
        ("2", 2, ""),
        ("SIGABRT", RESTART_ME, "another process was lost, so this one was aborted"),
        ("unmet", RESTART_ME, "the other processes could not be met"),
        ("SIGKILL", RESTART_ME, "killed, by someone or for want of memory"),
        ("SIGSEGV", 139, "ended by SIGSEGV"),
        ("SIGTERM", 143, ""),
        ("slow", 0, ""),
        ("unwatched", 0, ""),
        ("stops its parent", 143, ""),
    ],
)
def test_the_end_of_the_child_is_one_line_and_an_exit_code(
    what: str, code: int, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert supervise("watched_child", [what], stall_timeout=1.5) == code
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == bool(told)
    if told:
        assert lines[0].startswith(f"hackmatrix train: {told}")
        assert lines[0].endswith(f"(exit code {code})")


@pytest.mark.timeout(120)  # the child would sleep longer
def test_a_stuck_child_is_killed(capfd: pytest.CaptureFixture[str]) -> None:
    assert supervise("watched_child", ["SIGSTOP"], stall_timeout=1) == RESTART_ME
    assert "stuck: no update for 1 s, so it was killed" in capfd.readouterr().err
