"""The folder of compiled and kept programs: whose it is, what belongs to it, how it stays small."""

import os
from pathlib import Path

import pytest

from hackmatrix.cli.main import main
from hackmatrix.core.compiled import cache_folder

KEY = "0123456789abcdef" * 4
OURS = (
    f"{KEY}-hackmatrix",
    f".saving-{KEY}-hackmatrix-123",
    f"jit_step-{KEY}-cache",
    f"jit_step-{KEY}-atime",
    "xla_gpu_per_fusion_autotune_cache_dir/of-a-kernel",
)
NOT_OURS = (
    "notes.txt",
    "jit_step-cache",
    f"{KEY}-hackmatrix.old",
    f"jit_step-{KEY[:-1]}-cache",
    f"folder-{KEY}-cache/notes.txt",
    "another/" + f"jit_step-{KEY}-cache",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's choice, with files of the cache and others."""
    folder = tmp_path / "mine"
    for name in (*OURS, *NOT_OURS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * 1_000)
    (folder / f"link-{KEY}-cache").symlink_to(folder / "notes.txt")
    monkeypatch.setenv(cache_folder.VARIABLE, str(folder))
    return folder


def test_the_command_shows_and_empties_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = (folder / OURS[0]).stat().st_mtime
    for days, name in enumerate(OURS):
        os.utime(folder / name, (now - days * 86_400, now - days * 86_400))
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"folder    {folder}",
        "files     5 of programs, 0.0 MB",
        "used      last just now; the oldest 4 days ago",
    ]
    assert main(["cache", "--empty"]) == 0
    said = capsys.readouterr().out
    assert said == f"removed 5 files of programs from {folder}: 0.0 MB freed\n"
    assert all((folder / name).is_file() for name in NOT_OURS)
    assert not any((folder / name).exists() for name in OURS)


def test_a_folder_that_is_not_there_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "nowhere"))
    assert main(["cache"]) == main(["cache", "--empty"]) == 0
    assert "files     0 of programs, 0.0 MB" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is empty"),
        ("gs://bucket/jax", "is not a folder of this machine"),
        ("cache/jax", "names cache/jax, which is not a folder of this machine by its whole path"),
    ],
)
def test_a_cache_that_is_off_or_elsewhere_is_said_so(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, name)
    assert main(["cache", "--empty"]) == 2
    assert why in capsys.readouterr().err


def test_of_files_of_the_cache_those_stay_that_were_used_last(folder: Path) -> None:
    now = 1_700_000_000
    for age, name in enumerate(OURS):
        os.utime(folder / name, (now - age, now - 100))  # read later than written
    found = cache_folder.entries(folder)
    assert {entry.path.relative_to(folder).as_posix() for entry in found} == set(OURS)
    assert cache_folder.least_recently_used(found, 5_000) == []
    unwanted = cache_folder.least_recently_used(found, 2_999)
    assert {entry.path.relative_to(folder).as_posix() for entry in unwanted} == set(OURS[2:])
    assert cache_folder.remove(unwanted) == 3_000
    assert len(cache_folder.entries(folder)) == 2


def test_a_new_folder_is_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "jax"
    assert cache_folder.make(folder)
    assert cache_folder.make(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    assert not cache_folder.make(tmp_path / "file")
    assert not cache_folder.make(tmp_path / "file" / "folder")


def test_a_relative_cache_home_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert cache_folder.default_folder() == tmp_path / ".cache" / "hackmatrix" / "jax"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert cache_folder.default_folder() == tmp_path / "mine" / "hackmatrix" / "jax"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_folder_below_one_that_others_can_change_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "above" / "cache"
    assert cache_folder.make(folder)
    folder.parent.chmod(0o777)
    assert not cache_folder.make(folder)
    folder.parent.chmod(0o1777)  # as /tmp
    assert cache_folder.make(folder)
    (tmp_path / "link").symlink_to(folder.parent)
    assert cache_folder.make(tmp_path / "link" / "cache")
    folder.parent.chmod(0o777)
    assert not cache_folder.make(tmp_path / "link" / "cache")
    folder.parent.chmod(0o755)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not cache_folder.make(folder)
