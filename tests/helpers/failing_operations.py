"""File operations of this process that fail, as those of a disk that is about to break."""

import builtins
import errno
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = (
    *((os, name) for name in ("open", "rename", "replace", "unlink", "mkdir", "rmdir", "fsync")),
    (io, "open"),
    (builtins, "open"),
)


class Failing:
    """Counts the file operations in a folder; lets `count` of them fail, after `skip` others."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.path.realpath(folder)
        self._lock = threading.Lock()
        self.seen = 0  # operations so far
        self._first = self._last = 0  # those that fail, counted from 1

    def arm(self, skip: int, count: int = 1) -> None:
        """Lets the operations fail that come after `skip` others from now on."""
        with self._lock:
            self._first = self.seen + skip + 1
            self._last = self._first + count - 1

    def _is_meant(self, target: Any, settings: dict[str, Any]) -> bool:
        if settings.get("dir_fd") is not None:
            return True
        if isinstance(target, int):
            target = os.readlink(f"/proc/self/fd/{target}")
        return os.path.abspath(os.fspath(target)).startswith(self._folder)

    def wrapped(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        """The operation, which fails when its turn comes."""

        def maybe_failing(target: Any, *arguments: Any, **settings: Any) -> Any:
            if isinstance(target, bytes) or not self._is_meant(target, settings):
                return operation(target, *arguments, **settings)
            with self._lock:
                self.seen += 1
                fails = self._first <= self.seen <= self._last
            if fails:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return operation(target, *arguments, **settings)

        return maybe_failing


def install(folder: Path) -> Failing:
    """Wraps the operations of this process for good; none fails before `Failing.arm`."""
    failing = Failing(folder)
    for module, name in _NAMES:
        setattr(module, name, failing.wrapped(getattr(module, name)))
    return failing


@contextmanager
def failing_in(folder: Path) -> Iterator[Failing]:
    """Wraps the operations of this process while the context lasts."""
    before = [(module, name, getattr(module, name)) for module, name in _NAMES]
    try:
        yield install(folder)
    finally:
        for module, name, operation in before:
            setattr(module, name, operation)
