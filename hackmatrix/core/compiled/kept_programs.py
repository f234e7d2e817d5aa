"""Keeps traced programs on disk, so that a new process neither traces nor lowers them.

JAX's compilation cache keeps what the compiler makes of a program, under a key that is the program
itself; to ask for it, a process has to trace and lower the program first. For the game that takes
longer than loading what was compiled. So the lowered program is kept too, as StableHLO, under a key
that names all that it is made from: the source of the package, the function and its settings, the
shapes, the versions of the libraries, and JAX's configuration.

A kept program is used only if a process of this user has signed it (`signature.py`), and only from
a folder and a file of the user's own. Whatever else happens, it is made anew. It is not used at
all unless a process asks for it (`keep_programs_in`), because a function that was replaced in
memory has the same key.
"""

import hashlib
import hmac
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import jax
from jax import export

from hackmatrix.core.compiled import cache_folder
from hackmatrix.core.compiled.signature import SIZE, signature
from hackmatrix.core.files import open_no_link, write_atomically

_PACKAGE = Path(__file__).parents[2]
_LIBRARIES = ("jax", "jaxlib", "numpy")
_READ_BY_THE_SAME_JAX = (export.DisabledSafetyCheck.custom_call("LayoutConstraint"),)

T = TypeVar("T")

_folder: Path | None = None
_writes = True


def keep_programs_in(folder: Path | None, *, writes: bool = True) -> None:
    """From now on this process keeps programs in a folder of the user's own, or nowhere.

    Unless it `writes`, it uses what others have kept there.
    """
    global _folder, _writes
    _folder, _writes = folder, writes


def kept_program(
    name: str, function: Callable[..., Any], avals: Sequence[Any], platform: str
) -> Callable[..., Any]:
    """A function that does what `function` does, and need not be traced if it has been kept.

    Args:
        name: says which function of the package it is, with all settings.
        function: takes arrays and returns a tree of arrays.
        avals: shapes and dtypes of the arrays that it will be called with.
        platform: "cpu", "cuda" or another name of JAX for what it will run on.
    """
    if not all(isinstance(size, int) for aval in avals for size in aval.shape):
        return function
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    arrays = [(shape.shape, str(shape.dtype)) for shape in shapes]
    key = key_of(name, arrays, platform)
    if key is None:
        return function
    program = read(key, lambda content: export.deserialize(bytearray(content)))
    if program is None:
        make = export.export(
            jax.jit(function), platforms=[platform], disabled_checks=_READ_BY_THE_SAME_JAX
        )
        exported = make(*shapes)
        content = bytes(exported.serialize())
        write(key, content)
        # As the next process will find it: JAX's cache tells programs apart by their bytes.
        program = export.deserialize(bytearray(content))
    return program.call


def key_of(name: str, *parts: object) -> str | None:
    """The key of what is made from the package; None if nothing may be kept.

    Args:
        name: says what it is, with all settings.
        parts: whatever else it is made from; their texts say all that they hold.
    """
    if _folder is None or not _LOADED or _source() != _LOADED:
        return None
    return key_of_text(_LOADED, name, *parts)


def key_of_text(*parts: object) -> str:
    """The key of what is made from nothing else than these parts, JAX and its settings."""
    settings = {
        name: str(getattr(jax.config, name, value))
        for name, value in sorted(jax.config.values.items())
        if "cache" not in name
    }
    versions = [version(library) for library in _LIBRARIES]
    return hashlib.sha256(repr((*parts, versions, settings)).encode()).hexdigest()


def read(key: str, understood: Callable[[bytes], T]) -> T | None:
    """A file's content; None if there is no such file, or anything is wrong with it."""
    try:
        path = _path(key)
        if not cache_folder.is_trusted(path.parent):
            return None
        with open(path, "rb", opener=open_no_link) as file:
            if not cache_folder.belongs_to_user(os.fstat(file.fileno())):
                return None
            signed, content = file.read(SIZE), file.read()
        wanted = signature(key.encode() + content)
        if wanted is None or not hmac.compare_digest(signed, wanted):
            return None
        os.utime(path)  # what is used last is removed last
        return understood(content)
    except Exception:  # whatever is wrong with a file, what it holds can be made anew
        return None


def write(key: str, content: bytes) -> None:
    """Writes a file, if that is possible and this process is to write."""
    if not _writes:
        return
    try:
        path = _path(key)
        signed = signature(key.encode() + content)
        if signed is not None and cache_folder.is_trusted(path.parent):
            write_atomically(path, signed + content, mode=0o600)
    except OSError:
        return


def _source() -> str:
    """A checksum of the source of the package; "" if it can't be read."""
    digest = hashlib.sha256()
    files = sorted(_PACKAGE.rglob("*.py"))
    try:
        for path in files:
            digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    except OSError:
        return ""
    return digest.hexdigest() if files else ""


# What this process runs. If the files change while it runs, they no longer say what that is.
_LOADED = _source()


def _path(key: str) -> Path:
    if _folder is None:
        raise FileNotFoundError("nothing is kept")
    return cache_folder.kept_program_path(_folder, key)
