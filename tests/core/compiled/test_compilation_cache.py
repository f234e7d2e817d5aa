"""Where compiled programs are kept, and what happens if they can't be or are damaged."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

_CODE = """
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
enable_compilation_cache()
import jax
for number in range(5):
    jax.jit(lambda: number + jax.numpy.arange(3))().block_until_ready()
"""


def run(folder: str | Path | None, home: Path, code: str = _CODE, before: str = "") -> str:
    """Runs a process that compiles five small programs; returns what it says on stderr."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    if folder is not None:
        environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    command = [sys.executable, "-c", before + code]
    return subprocess.run(
        command, env=environment, check=True, stderr=subprocess.PIPE, text=True
    ).stderr


def compiled(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*-cache")}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a process has kept its programs."""
    home = tmp_path_factory.mktemp("home")
    assert run(None, home) == ""
    return home


@pytest.fixture
def kept(home: Path) -> Iterator[Path]:
    """Their folder, which is at the end as it was; JAX finds programs in no other."""
    folder = home / ".cache" / "hackmatrix" / "jax"
    programs = compiled(folder)
    assert len(programs) == 5
    yield folder
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    for name, content in programs.items():
        (folder / name).write_bytes(content)


def test_programs_are_kept_where_caches_are(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    subprocess.run([sys.executable, "-c", _CODE], env=environment, check=True)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert entries
    assert all(path.is_relative_to(tmp_path / "xdg" / "hackmatrix" / "jax") for path in entries)


@pytest.mark.parametrize("chosen", ["mine", ""])
def test_a_folder_of_ones_own_choice_or_none_is_used(chosen: str, tmp_path: Path) -> None:
    run(chosen and tmp_path / chosen, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ([chosen] if chosen else [])


def flipped(content: bytes, place: int) -> bytes:
    damaged = bytearray(content)
    damaged[place] ^= 1
    return bytes(damaged)


def test_damaged_programs_are_replaced_without_a_word(kept: Path, home: Path) -> None:
    whole = compiled(kept)
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
    assert run(None, home) == ""
    replaced = compiled(kept)
    assert replaced.keys() == whole.keys()
    assert not [name for name in whole if replaced[name] == damaged[name]]
    assert run(None, home) == ""
    assert compiled(kept) == replaced


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
def test_a_full_disk_is_told_once_and_fails_nothing(tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    said = run(tmp_path / "cache", tmp_path, before=full)
    assert said.count("compiled programs can't be kept on disk: OSError") == 1
    assert "Traceback" not in said
    assert "Error writing" not in said


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_folder_in_the_home_that_others_may_write_to_is_not_used(kept: Path, home: Path) -> None:
    shutil.rmtree(kept)
    kept.mkdir()
    kept.chmod(0o777)
    assert "chmod 700" in run(None, home)
    assert not list(kept.iterdir())


def test_a_home_that_cant_be_written_to_is_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()  # no folder can be made there, not even by root
    said = run(None, home)
    assert said.startswith("hackmatrix: warning: compiled programs are not kept on disk, ")
    assert said.count("\n") == 1


def test_what_was_used_longest_ago_is_removed_at_the_next_start(kept: Path, home: Path) -> None:
    programs = compiled(kept)
    (kept / "notes.txt").write_text("mine")
    oldest, *others = programs
    for age, name in enumerate((*others, oldest)):
        os.utime(kept / name, (1_700_000_000 - age, 1_700_000_000 - age))
    size = sum(map(len, programs.values())) - 1
    where = "hackmatrix.core.compiled"
    limit = f"from {where} import cache_folder; cache_folder.MOST_BYTES = {size}\n"
    enable = f"from {where}.compilation_cache import enable_compilation_cache as enable\n"
    run(None, home, code="enable()", before=limit + enable)
    assert compiled(kept).keys() == set(others)
    assert (kept / "notes.txt").exists()


def test_a_folder_of_ones_own_choice_keeps_what_jax_has_put_there(kept: Path, home: Path) -> None:
    limit = "from hackmatrix.core.compiled import cache_folder; cache_folder.MOST_BYTES = 0\n"
    programs = compiled(kept)
    run(kept, home, before=limit)
    assert compiled(kept) == programs
