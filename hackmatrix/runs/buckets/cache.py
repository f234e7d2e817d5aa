"""Copies of what lies in buckets, in a folder of the user's cache, for commands that only read.

A copy is compared with the bucket by checksums each time it is asked for; only what differs is
fetched.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.runs.bucket import FIRST_PATIENCE, PATIENCE, Address, Bucket, Missing, Object
from hackmatrix.runs.buckets.fetch import fetch_files
from hackmatrix.runs.buckets.plan import checkpoint_of, half_checkpoints, is_mirrored
from hackmatrix.runs.checkpoints import plays_hackmatrix
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.metrics_file import METRICS_FILE
from hackmatrix.runs.names import is_checkpoint_name

MOST_RUNS = 24  # of a folder of runs, the newest

_OF_A_RUN = re.compile(rf"([^/]+)/({re.escape(CONFIG)}|{re.escape(METRICS_FILE)})")
_PARAMS = re.compile(r"([^/]+)/(?:seed_\d+/)?(?:final_params|params_\d+)\.npz")

Objects = dict[str, Object]


def cache_folder() -> Path:
    """The folder of all copies.

    Raises:
        UserError: the user has no home.
    """
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise UserError("there is no home folder for copies: set XDG_CACHE_HOME") from None
    return home / "hackmatrix" / "buckets"


def fetch(address: Address, *, checkpoints: bool = False) -> Path:
    """The copy of a file, with the facts beside it, or of a folder.

    Args:
        address: of the object or the folder.
        checkpoints: whether checkpoints are wanted too, which are much larger than the rest of a
            run.

    Raises:
        UserError: there is nothing at the address.
        BucketError: the bucket can't be read.
    """
    bucket, objects = _contact(address)
    if not objects and address.path:
        return _fetch_file(address, checkpoints=checkpoints)
    half = set(half_checkpoints(objects))

    def is_wanted(name: str) -> bool:
        update = checkpoint_of(name)
        return is_mirrored(name) and (update is None or (checkpoints and update not in half))

    return _copy_folder(
        bucket, {name: o for name, o in objects.items() if is_wanted(name)}, is_wanted
    )


def fetch_runs(address: Address) -> Path:
    """The copy of a run, or of the rows and settings of the newest runs in a folder.

    Raises:
        UserError: there is nothing at the address.
        BucketError: the bucket can't be read.
    """
    if address.name == METRICS_FILE:
        address = address.parent
    bucket, objects = _contact(address)
    if not objects:
        raise UserError(f"{address}: there is nothing")
    if CONFIG in objects or METRICS_FILE in objects:
        wanted = {n: o for n, o in objects.items() if is_mirrored(n) and checkpoint_of(n) is None}
        return _copy_folder(bucket, wanted, lambda name: checkpoint_of(name) is None)
    newest = _newest(objects, _OF_A_RUN)[:MOST_RUNS]
    wanted = {
        name: there
        for name, there in objects.items()
        if (found := _OF_A_RUN.fullmatch(name)) and found[1] in newest
    }
    return _copy_folder(bucket, wanted, lambda name: _OF_A_RUN.fullmatch(name) is not None)


def newest_with_params(address: Address) -> Address:
    """The run of HackMatrix in a folder of runs whose params were written last.

    Raises:
        UserError: no run there has params.
        BucketError: the bucket can't be read.
    """
    bucket, objects = _contact(address)
    for run in _newest(objects, _PARAMS):
        files = {
            n: o for n, o in objects.items() if n.startswith(f"{run}/") and _PARAMS.fullmatch(n)
        }
        newest = max(files, key=lambda name: files[name].updated)
        if plays_hackmatrix(_facts(bucket, newest.removesuffix(".npz") + ".json")):
            return address / run
    raise UserError(f"{address}: no run with params in it that plays {ENVIRONMENT_ID}")


def _facts(bucket: Bucket, name: str) -> dict[str, Any]:
    """The facts in an object; empty if there are none."""
    try:
        facts = json.loads(bucket.read(name))
    except (Missing, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def keep_fetching(fetch: Callable[[], object], seconds: float) -> None:
    """Fetches again and again in a thread, for as long as the process lives.

    While the bucket does not answer, readers go on with what is there.
    """

    def work() -> None:
        while True:
            time.sleep(seconds)
            try:
                fetch()
            except (OSError, UserError):
                continue

    threading.Thread(target=work, name="fetching", daemon=True).start()


def _contact(address: Address) -> tuple[Bucket, Objects]:
    """The folder at an address and its objects: the first request, for which nobody waits long."""
    bucket = Bucket(address, FIRST_PATIENCE)
    try:
        objects = bucket.objects()
    except Missing:
        raise UserError(f"gs://{address.bucket}: there is no such bucket") from None
    bucket.patience = PATIENCE
    return bucket, objects


def _fetch_file(address: Address, *, checkpoints: bool) -> Path:
    folder = Bucket(address.parent, FIRST_PATIENCE)
    there = folder.find(address.name)
    if there is None and is_checkpoint_name(address.name) and folder.find(CONFIG) is not None:
        return fetch(address.parent, checkpoints=checkpoints) / address.name
    if there is None:
        raise UserError(f"{address}: there is neither a file nor a folder")
    wanted = {address.name: there}
    facts = Path(address.name).with_suffix(".json").name
    if (about := folder.find(facts)) is not None:
        wanted[facts] = about
    path = address.below(cache_folder())
    path.with_suffix(".json").unlink(missing_ok=True)  # never facts of other params
    fetch_files(folder, wanted, path.parent)
    return path


def _copy_folder(bucket: Bucket, objects: Objects, is_wanted: Callable[[str], bool]) -> Path:
    """The copy of a folder, with these objects, and no other files that are wanted."""
    folder = bucket.address.below(cache_folder())
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in objects and is_mirrored(name) and is_wanted(name):
            path.unlink(missing_ok=True)
    fetch_files(bucket, objects, folder)
    return folder


def _newest(objects: Objects, names: re.Pattern[str]) -> list[str]:
    """The runs that have objects of such names, those first that were written last."""
    times: dict[str, datetime] = {}
    for name, there in objects.items():
        if found := names.fullmatch(name):
            times[found[1]] = max(there.updated, times.get(found[1], there.updated))
    return sorted(times, key=lambda run: times[run], reverse=True)
