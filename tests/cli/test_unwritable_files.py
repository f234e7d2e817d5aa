"""Commands that work for long say first if the file of their results can't be written."""

import os
from pathlib import Path

import pytest

from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import check_writable

COMMANDS = [  # each without the file
    ("puzzles", "-o", ".json"),
    ("evaluate random", "--report", ".html"),
    ("evaluate random", "--games", ".csv"),
    ("compare a b", "--plot", ".svg"),
    ("replay game.json", "--gif", ".gif"),
    ("replay game.json", "--svg", ".svg"),
]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("command", "flag", "suffix"), COMMANDS)
def test_a_file_in_no_folder_is_refused_at_once(
    command: str, flag: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), flag, f"nowhere/it{suffix}"]) == 2
    error = f"{flag} nowhere/it{suffix}: there is no folder nowhere\n"
    assert capsys.readouterr().err == f"hackmatrix {command.split()[0]}: error: {error}"


@pytest.mark.parametrize("file", ["/", "."])
def test_puzzles_are_not_searched_for_a_folder(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["puzzles", "-o", file]) == 2
    error = f"hackmatrix puzzles: error: -o {file}: can't be written there\n"
    assert capsys.readouterr().err == error


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("old")
    for path in (old, tmp_path / "new", Path("new")):
        check_writable(path, "it")
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_what_a_kill_left_long_ago_is_removed(tmp_path: Path) -> None:
    old, young, other = (tmp_path / f".saving-{name}" for name in ("a.csv-1", "a.csv-2", "b.csv-1"))
    for path in (old, young, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (0, 0))
    check_writable(tmp_path / "a.csv", "it")
    assert sorted(tmp_path.iterdir()) == [young, other]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
def test_a_folder_that_takes_no_files() -> None:
    with pytest.raises(UserError, match="it: can't be written there"):
        check_writable(Path("/proc/file"), "it")
