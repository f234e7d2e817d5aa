"""Programs that are kept on disk before they are compiled: when they are used, and when not."""

import hashlib
import hmac
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

from hackmatrix.core.compiled import kept_programs
from hackmatrix.core.compiled.kept_programs import kept_program
from hackmatrix.core.compiled.signature import signature

X = jnp.arange(4, dtype=jnp.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which programs are kept."""
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(kept_programs, "_folder", folder)
    return folder


def is_traced(name: str = "double", x: jax.Array = X, platform: str = "cpu") -> bool:
    """Whether a function with this name has to be traced; its result must be right anyway."""
    traces = 0

    def double(x: jax.Array) -> list[jax.Array]:
        nonlocal traces
        traces += 1
        return [x * 2]

    program = kept_program(name, double, [x], platform)
    if platform == "cpu":
        (result,) = jax.jit(program)(x)
        assert (result == x * 2).all()
    return traces > 0


def the_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_is_kept_is_not_traced_again(folder: Path) -> None:
    assert is_traced()
    assert not is_traced()
    assert not is_traced()
    assert the_file(folder).stat().st_mode & 0o777 == 0o600


def test_nothing_is_kept_unless_a_process_asks_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_programs, "_folder", None)
    assert is_traced()
    assert is_traced()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "other",
    [
        {"name": "triple"},
        {"x": jnp.arange(5, dtype=jnp.float32)},
        {"x": jnp.arange(4)},
        {"platform": "tpu"},
    ],
    ids=["name", "shape", "dtype", "platform"],
)
def test_whatever_is_different_makes_another_program(other: dict[str, Any], folder: Path) -> None:
    assert is_traced()
    assert is_traced(**other)
    assert not is_traced(**other)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("what", ["version", "_PACKAGE"])
def test_other_versions_and_another_source_make_another_program(
    what: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_traced()
    others = {"version": str.upper, "_PACKAGE": Path(__file__).parent}
    monkeypatch.setattr(kept_programs, what, others[what])
    monkeypatch.setattr(kept_programs, "_LOADED", kept_programs._source())
    assert is_traced()
    assert not is_traced()
    assert len(list(folder.iterdir())) == 2


def test_another_configuration_of_jax_makes_another_program(folder: Path) -> None:
    assert is_traced()
    with jax.default_matmul_precision("highest"):
        assert is_traced()
        assert not is_traced()
    with jax.enable_x64(True):
        assert is_traced()
    assert not is_traced()
    assert len(list(folder.iterdir())) == 3


def test_a_source_that_changed_after_it_was_loaded_is_neither_read_nor_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "package" / "rules.py"
    source.parent.mkdir()
    source.write_text("HP = 3")
    monkeypatch.setattr(kept_programs, "_PACKAGE", source.parent)
    monkeypatch.setattr(kept_programs, "_LOADED", kept_programs._source())
    assert is_traced()
    assert not is_traced()
    source.write_text("HP = 4")
    assert is_traced()
    assert is_traced("another")
    assert len(list(folder.iterdir())) == 1
    source.write_text("HP = 3")
    assert not is_traced()


def test_a_package_without_source_is_not_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_programs, "_PACKAGE", tmp_path / "nowhere")
    monkeypatch.setattr(kept_programs, "_LOADED", kept_programs._source())
    assert is_traced()
    assert is_traced()
    assert not list(folder.iterdir())


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:0],
        lambda content: content[:20],
        lambda content: content[:32],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: flipped(content, 0),
        lambda content: flipped(content, len(content) // 2),
        lambda content: flipped(content, len(content) - 1),
    ],
    ids=["empty", "20", "32", "truncated", "longer", "checksum", "middle", "end"],
)
def test_a_damaged_file_is_replaced(damage: Callable[[bytes], bytes], folder: Path) -> None:
    assert is_traced()
    whole = the_file(folder).read_bytes()
    the_file(folder).write_bytes(damage(whole))
    assert is_traced()
    assert the_file(folder).read_bytes() != damage(whole)
    assert not is_traced()


def test_a_program_under_the_name_of_another_is_not_used(folder: Path) -> None:
    assert is_traced()
    file = the_file(folder)
    assert is_traced("triple")
    other = next(path for path in folder.iterdir() if path != file)
    file.write_bytes(other.read_bytes())
    assert is_traced()


def test_a_file_that_this_version_of_jax_does_not_understand_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_traced()
    assert the_file(folder)
    answers = [ValueError("a format of tomorrow"), None]

    def deserialize(content: bytearray) -> export.Exported:
        if (error := answers.pop(0)) is not None:
            raise error
        return export.deserialize(content)

    with monkeypatch.context() as patch:
        patched = SimpleNamespace(deserialize=deserialize, export=export.export)
        patch.setattr(kept_programs, "export", patched)
        assert is_traced()
    assert not is_traced()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_neither_read_nor_written(
    mode: int, folder: Path
) -> None:
    assert is_traced()
    folder.chmod(mode)
    assert is_traced()
    assert is_traced("another")
    assert len(list(folder.iterdir())) == 1
    folder.chmod(0o755)
    assert not is_traced()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_to_is_not_read(mode: int, folder: Path) -> None:
    assert is_traced()
    the_file(folder).chmod(mode)
    assert is_traced()
    assert not is_traced()  # it has been replaced by the user's own


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such owners")
def test_another_users_folder_is_neither_read_nor_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_traced()
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    assert is_traced()
    assert is_traced("another")
    assert len(list(folder.iterdir())) == 1


def test_a_folder_that_is_gone_or_full_fails_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept_programs, "write_atomically", full)
        assert is_traced()
        assert is_traced()
    folder.rmdir()
    assert is_traced()
    folder.write_bytes(b"a file where the folder was")
    assert is_traced()


def test_a_program_for_any_number_of_games_is_traced(folder: Path) -> None:
    (size,) = export.symbolic_shape("size")

    def double(x: jax.Array) -> list[jax.Array]:
        return [x * 2]

    shape = jax.ShapeDtypeStruct((size,), jnp.float32)
    assert kept_program("double", double, [shape], "cpu") is double
    assert not list(folder.iterdir())


_CODE = """
import sys
from pathlib import Path
import jax, jax.numpy as jnp
from hackmatrix.core.compiled.kept_programs import keep_programs_in, kept_program
keep_programs_in(Path(sys.argv[1]))
x = jnp.arange(4)
print("ready", flush=True)
sys.stdin.read(1)
for i in range(20):
    program = kept_program(f"times {i}", lambda x: [x * i], [x], "cpu")
    assert (program(x)[0] == x * i).all()
"""


@pytest.mark.slow
def test_two_processes_may_keep_the_same_programs_at_once(folder: Path) -> None:
    command = [sys.executable, "-c", _CODE, str(folder)]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdin=pipe, stdout=pipe) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        process.stdout.readline()
    for process in both:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in both:
        process.communicate()
        assert process.returncode == 0
    files = list(folder.iterdir())
    assert len(files) == 20
    assert not [path for path in files if path.name.startswith(".")]


def test_only_what_this_user_has_signed_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    key, content = "0" * 64, b"a program"
    kept_programs.write(key, content)
    assert kept_programs.read(key, bytes.decode) == "a program"
    secret = home / ".hackmatrix" / "key"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600

    (planted,) = folder.iterdir()
    planted.write_bytes(hashlib.sha256(key.encode() + content).digest() + content)
    assert kept_programs.read(key, bytes.decode) is None
    kept_programs.write(key, content)
    moved = planted.rename(folder / "elsewhere")
    planted.symlink_to(moved)
    assert kept_programs.read(key, bytes.decode) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("what", ["open to others", "a link", "short"])
def test_a_key_that_is_not_private_is_replaced(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    key = tmp_path / ".hackmatrix" / "key"
    key.parent.mkdir()
    planted = tmp_path / "planted" if what == "a link" else key
    planted.write_bytes(b"x" * (31 if what == "short" else 32))
    planted.chmod(0o644 if what == "open to others" else 0o600)
    if what == "a link":
        key.symlink_to(planted)
    assert signature(b"a program") != hmac.digest(b"x" * 32, b"a program", "sha256")
    assert key.stat().st_size == 32
    assert stat.S_IMODE(key.lstat().st_mode) == 0o600


def test_without_a_home_to_write_to_nothing_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    kept_programs.write("0" * 64, b"a program")
    assert list(folder.iterdir()) == []
