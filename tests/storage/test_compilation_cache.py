"""Where compiled programs are kept, and what happens if they can't be or are damaged."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_CODE = """
from hackmatrix.storage.compilation_cache import enable_compilation_cache
enable_compilation_cache()
import jax, jax.numpy as jnp
jax.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(3)).block_until_ready()
"""


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({}, "home/.cache/hackmatrix/jax"),
        ({"XDG_CACHE_HOME": "xdg"}, "xdg/hackmatrix/jax"),
        ({"JAX_COMPILATION_CACHE_DIR": "mine"}, "mine"),
        ({"JAX_COMPILATION_CACHE_DIR": ""}, None),
    ],
)
def test_programs_are_kept_where_they_are_wanted(
    variables: dict[str, str], kept: str | None, tmp_path: Path
) -> None:
    variables = {name: value and str(tmp_path / value) for name, value in variables.items()}
    environment = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", **variables}
    subprocess.run([sys.executable, "-c", _CODE], env=environment, check=True)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    if kept is None:
        assert entries == []
    else:
        assert entries
        assert all(path.is_relative_to(tmp_path / kept) for path in entries)


def run(folder: Path | None, home: Path, code: str = _CODE, before: str = "") -> str:
    """Runs a process that compiles some small programs; returns what it says on stderr."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    if folder is not None:
        environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    command = [sys.executable, "-c", before + code]
    return subprocess.run(
        command, env=environment, check=True, stderr=subprocess.PIPE, text=True
    ).stderr


def compiled(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*-cache")}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[:0], marks=pytest.mark.slow),
        pytest.param(lambda content: content[:10], marks=pytest.mark.slow),
        lambda content: content[:-1],
        lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
        pytest.param(
            lambda content: content[:-1] + bytes([content[-1] ^ 1]), marks=pytest.mark.slow
        ),
    ],
    ids=["empty", "10", "truncated", "flipped", "end"],
)
def test_damaged_programs_are_replaced_without_a_word(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    assert run(folder, tmp_path) == ""
    whole = compiled(folder)
    for name, content in whole.items():
        (folder / name).write_bytes(damage(content))
    assert run(folder, tmp_path) == ""
    replaced = compiled(folder)
    assert replaced.keys() == whole.keys()
    assert not [name for name in whole if replaced[name] == damage(whole[name])]
    assert run(folder, tmp_path) == ""
    assert compiled(folder) == replaced


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
def test_a_full_disk_is_told_once_and_fails_nothing(tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    said = run(tmp_path / "cache", tmp_path, before=full)
    assert said.count("compiled programs can't be kept on disk: OSError") == 1
    assert "Traceback" not in said
    assert "Error writing" not in said


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_folder_in_the_home_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / ".cache" / "hackmatrix" / "jax"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert "chmod 700" in run(None, tmp_path)
    assert not list(folder.iterdir())
    folder.chmod(0o700)
    assert run(None, tmp_path) == ""
    assert compiled(folder)


def test_what_was_used_longest_ago_is_removed_at_the_next_start(tmp_path: Path) -> None:
    run(None, tmp_path)
    folder = tmp_path / ".cache" / "hackmatrix" / "jax"
    programs = compiled(folder)
    (folder / "notes.txt").write_text("mine")
    oldest, *others = programs
    for age, name in enumerate((*others, oldest)):
        os.utime(folder / name, (1_700_000_000 - age, 1_700_000_000 - age))
    size = sum(map(len, programs.values())) - 1
    limit = f"from hackmatrix.storage import cache_folder; cache_folder.MOST_BYTES = {size}\n"
    enable = "from hackmatrix.storage.compilation_cache import enable_compilation_cache as enable\n"
    run(None, tmp_path, code="enable()", before=limit + enable)
    assert compiled(folder).keys() == set(others)
    assert (folder / "notes.txt").exists()


def test_a_folder_of_ones_own_choice_keeps_what_jax_has_put_there(tmp_path: Path) -> None:
    run(tmp_path / "mine", tmp_path)
    programs = compiled(tmp_path / "mine")
    limit = "from hackmatrix.storage import cache_folder; cache_folder.MOST_BYTES = 0\n"
    run(tmp_path / "mine", tmp_path, before=limit)
    assert compiled(tmp_path / "mine") == programs
