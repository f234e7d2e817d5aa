"""Where command lines that only read turn an address in a bucket into a path of this machine."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hackmatrix.runs.bucket import Address, check_installed, is_address

AnyPath = TypeVar("AnyPath", str, Path)


def local(path: AnyPath, *, checkpoints: bool = False) -> AnyPath:
    """A path as it is; for gs://... that of a copy, which is fetched now.

    Args:
        path: a file or a folder, here or in a bucket.
        checkpoints: whether a run's checkpoints are wanted too.

    Raises:
        UserError: there is nothing at the address.
        BucketError: the bucket can't be read.
    """
    if not is_address(path):
        return path
    from hackmatrix.runs.buckets.cache import fetch

    return type(path)(
        _announce_and_fetch(path, lambda: fetch(Address.of(path), checkpoints=checkpoints))
    )


def local_runs(path: AnyPath, seconds: float | None = None) -> AnyPath:
    """A path as it is; for gs://... that of a copy of a run's rows, or of those of many runs.

    Args:
        path: a run, or a folder of runs, here or in a bucket.
        seconds: fetch again so often; None: once.
    """
    if not is_address(path):
        return path
    from hackmatrix.runs.buckets.cache import fetch_runs, keep_fetching

    address = Address.of(path)
    copy = _announce_and_fetch(path, lambda: fetch_runs(address))
    if seconds is not None:
        keep_fetching(lambda: fetch_runs(address), seconds)
    return type(path)(copy)


def local_newest(path: Path) -> Path:
    """For the address of a folder of runs the copy of the run whose params are newest."""
    from hackmatrix.runs.buckets.cache import fetch, newest_with_params

    return _announce_and_fetch(path, lambda: fetch(newest_with_params(Address.of(path))))


def _announce_and_fetch(path: str | Path, fetch: Callable[[], Path]) -> Path:
    check_installed(Address.of(path))
    print(f"fetching {Address.of(path)} ...", file=sys.stderr, flush=True)
    return fetch()
