"""Keeps compiled programs on disk, so that only the first run waits for the compiler."""

import contextlib
import functools
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from hackmatrix.core.compiled import cache_folder

_READING = re.compile(r"Error reading persistent compilation cache entry for '([^']+)'")
_WRITING = re.compile(r"Error writing persistent compilation cache entry for '[^']+': (.*)", re.S)
_NOT_KEPT = (
    "compiled programs are not kept on disk, so every run waits for the compiler: "
    f"there is no folder that you alone may write to; let {cache_folder.VARIABLE} name one "
    "(~/.cache/hackmatrix/jax is used if `chmod 700` makes it yours)"
)


def enable_compilation_cache() -> None:
    """Lets JAX keep compiled programs on disk.

    The folder is the one that `JAX_COMPILATION_CACHE_DIR`, or JAX's own setting, names; otherwise
    one in the user's home. An empty name, or a folder in the home that others may write to,
    disables the cache.
    """
    named = jax.config.values["jax_compilation_cache_dir"]
    folder = cache_folder.default_folder() if named is None else cache_folder.local(named)
    if folder is not None and not cache_folder.make(folder):
        folder = None
    if named is None:
        if folder is None:
            _tell(_NOT_KEPT)
            return
        jax.config.update("jax_compilation_cache_dir", str(folder))
    # By default JAX keeps only programs that took a second to compile; a run compiles many small
    # ones.
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES" not in os.environ:
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if folder is not None:
        found = cache_folder.entries(folder)
        # In a folder of the user's choice, compiled programs may be those of other projects.
        ours = found if named is None else [entry for entry in found if entry.is_kernel]
        cache_folder.remove(cache_folder.least_recently_used(ours, cache_folder.MOST_BYTES))
    warnings.showwarning = _Warnings(folder, warnings.showwarning)


class _Warnings:
    """Shows warnings, but for what JAX says of files that it can't read or write.

    JAX warns of a damaged file whenever it needs it and leaves it as it is. Here it is removed,
    before JAX writes what it has compiled instead. That programs can't be written is said once.
    """

    def __init__(self, folder: Path | None, show: Callable[..., None]) -> None:
        self._folder = folder
        self._show = show

    def __call__(self, message: Warning | str, *where: Any, **more: Any) -> None:
        text = str(message)
        if (damaged := _READING.match(text)) and self._folder is not None:
            found = cache_folder.entries(self._folder)
            cache_folder.remove(e for e in found if e.path.name.startswith(f"{damaged[1]}-"))
        elif (failed := _WRITING.match(text)) is None:
            self._show(message, *where, **more)
        else:
            _tell(f"compiled programs can't be kept on disk: {' '.join(failed[1].split())}")


@functools.cache  # once in a process
def _tell(text: str) -> None:
    """A line on stderr: Python would show a warning with a line of the code that has caused it."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"hackmatrix: warning: {text}", file=sys.stderr)
