"""Where compiled programs are kept, and what happens if they can't be or are damaged."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from hackmatrix.core.compiled import cache_folder, compilation_cache
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

_CODE = """
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
enable_compilation_cache()
import jax
for number in range(5):
    jax.jit(lambda: number + jax.numpy.arange(3))().block_until_ready()
"""
DIR = "jax_compilation_cache_dir"
NAMES = [f"jit_{program}-{'0123456789abcdef' * 4}-cache" for program in ("a", "b", "c")]


def run(folder: Path | None, home: Path, before: str = "") -> str:
    """Runs a process that compiles five small programs; returns what it says on stderr."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    if folder is not None:
        environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    command = [sys.executable, "-c", before + _CODE]
    return subprocess.run(
        command, env=environment, check=True, stderr=subprocess.PIPE, text=True
    ).stderr


def flipped(content: bytes, place: int) -> bytes:
    damaged = bytearray(content)
    damaged[place] ^= 1
    return bytes(damaged)


@pytest.mark.thorough
def test_damaged_programs_are_replaced_without_a_word(tmp_path: Path) -> None:
    kept = tmp_path / ".cache" / "hackmatrix" / "jax"

    def compiled() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in kept.glob("*-cache")}

    assert run(None, tmp_path) == ""
    whole = compiled()
    damages = [
        lambda content: content[:0],
        lambda content: content[:10],
        lambda content: content[:-1],
        lambda content: flipped(content, 20),
        lambda content: flipped(content, -1),
    ]
    damaged = {
        name: damage(whole[name]) for name, damage in zip(sorted(whole), damages, strict=True)
    }
    for name, content in damaged.items():
        (kept / name).write_bytes(content)
    assert run(None, tmp_path) == ""
    replaced = compiled()
    assert replaced.keys() == whole.keys()
    assert not [name for name in whole if replaced[name] == damaged[name]]
    assert run(None, tmp_path) == ""
    assert compiled() == replaced


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
def test_a_full_disk_is_told_once_and_fails_nothing(tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    said = run(tmp_path / "cache", tmp_path, before=full)
    assert said.count("compiled programs can't be kept on disk: OSError") == 1
    assert "Traceback" not in said
    assert "Error writing" not in said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a new home; no other is named, as in a process that begins."""
    before = jax.config.values[DIR]
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    compilation_cache._tell.cache_clear()
    jax.config.update(DIR, None)
    yield tmp_path / "home" / ".cache" / "hackmatrix" / "jax"
    jax.config.update(DIR, before)
    compilation_cache._tell.cache_clear()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_folder_in_the_home_that_others_may_write_to_is_not_used(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    enable_compilation_cache()
    assert "chmod 700" in capsys.readouterr().err
    assert jax.config.values[DIR] is None


def test_a_home_that_cant_be_written_to_is_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").touch()  # no folder can be made there, not even by root
    enable_compilation_cache()
    said = capsys.readouterr().err
    assert said.startswith("hackmatrix: warning: compiled programs are not kept on disk, ")
    assert said.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize("is_named", [False, True])
def test_what_was_used_longest_ago_is_removed_from_our_own_folder(
    folder: Path, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(mode=0o700, parents=True)
    for age, name in enumerate([*NAMES, "notes.txt"]):
        (folder / name).write_bytes(b"x" * 1_000)
        os.utime(folder / name, (1_700_000_000 - age, 1_700_000_000 - age))
    monkeypatch.setattr(cache_folder, "MOST_BYTES", 2_999)
    if is_named:  # then its programs may be those of other projects
        jax.config.update(DIR, str(folder))
    enable_compilation_cache()
    assert jax.config.values[DIR] == str(folder)
    left = {path.name for path in folder.iterdir()}
    assert left == {*(NAMES if is_named else NAMES[:2]), "notes.txt"}


def test_an_empty_name_means_no_folder(folder: Path) -> None:
    jax.config.update(DIR, "")
    enable_compilation_cache()
    assert jax.config.values[DIR] == ""
    assert not folder.exists()
