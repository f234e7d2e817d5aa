"""Copies objects of a bucket to files here: only what differs, and each file as a whole."""

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import MANIFEST, PARTIAL, DamagedError, check_manifest, write_atomically
from hackmatrix.runs.bucket import Bucket, Missing, Object, Unreachable, checksum
from hackmatrix.runs.buckets.plan import (
    checkpoint_of,
    half_checkpoints,
    is_mirrored,
    params_update,
    prunable,
    whole_checkpoints,
)
from hackmatrix.runs.checkpoints import FOLDER, checkpoints_of, is_whole
from hackmatrix.runs.folder import CONFIG

_TRIES = 4  # at an object that is written while it is read

Say = Callable[[str], None]
Objects = Mapping[str, Object]  # by name


def fetch_file(bucket: Bucket, name: str, there: Object, path: Path) -> None:
    """Makes a file like an object; one that is like it already is left alone.

    A file that the object continues, as rows of metrics do, only gets what is new.

    Raises:
        Missing: the object is no longer there.
        BucketError: it can't be read.
    """
    try:
        here = path.read_bytes()
    except FileNotFoundError:
        here = None
    path.parent.mkdir(parents=True, exist_ok=True)
    if here is not None and checksum(here) == there.crc32c and len(here) == there.size:
        return
    if here and len(here) < there.size and _append(bucket, name, there, path, here):
        return
    for _ in range(_TRIES):
        content = bucket.read(name)
        if checksum(content) == there.crc32c:
            write_atomically(path, content)
            _set_time(path, there)
            return
        if (found := bucket.find(name)) is None:
            raise Missing(f"{bucket.address / name}: was deleted")
        there = found
    raise Unreachable(f"{bucket.address / name}: changes while it is read; try again")


def fetch_files(bucket: Bucket, objects: Objects, folder: Path) -> None:
    """Makes the files of a folder like objects; those that are deleted meanwhile are left out."""
    for name, there in sorted(objects.items(), key=lambda each: each[0].endswith(".json")):
        try:
            fetch_file(bucket, name, there, folder / name)
        except Missing:
            continue


def run_objects(bucket: Bucket, *, must_exist: bool = True) -> Objects:
    """The objects of a run in a bucket that its folder holds too.

    Raises:
        UserError: there is no such run, and it must exist.
        BucketError: it can't be read.
    """
    objects = {name: each for name, each in bucket.objects().items() if is_mirrored(name)}
    if must_exist and CONFIG not in objects:
        raise UserError(f"{bucket.address}: there is no run")
    return objects


def fetch_run(
    bucket: Bucket, objects: Objects, run: Path, say: Say, update: int | None = None
) -> None:
    """Makes a run's folder here like that in the bucket.

    A kill at any moment leaves a folder from which this goes on. The run must be leased, or its
    training be over.

    Args:
        bucket: the run's folder in the bucket.
        objects: what is there, see `run_objects`.
        run: the run's folder here, made if missing.
        say: called with a line about what is fetched, and what is damaged.
        update: of the checkpoint that is wanted; None for the newest.

    Raises:
        UserError: the checkpoint of `update` is damaged.
        BucketError: the bucket can't be read.
    """
    whole = whole_checkpoints(objects)
    for checkpoint_update in half_checkpoints(objects):
        say(
            f"{bucket.address}/{FOLDER}/{checkpoint_update} was not uploaded completely: "
            "it is left out"
        )
    say(f"fetching {bucket.address} to {run}")
    fetch_files(bucket, {n: o for n, o in objects.items() if not prunable(n)}, run)
    fetched: set[int] = set()
    for (
        checkpoint_update
    ) in whole:  # the newest last: while it is missing, a next try fetches the rest
        params = {
            name: o for name, o in objects.items() if params_update(name) == checkpoint_update
        }
        fetch_files(bucket, params, run)
        of_one = {
            name: o for name, o in objects.items() if checkpoint_of(name) == checkpoint_update
        }
        if _fetch_checkpoint(bucket, of_one, run / FOLDER / str(checkpoint_update), say):
            fetched.add(checkpoint_update)
        else:
            for name in params:
                (run / name).unlink(missing_ok=True)
    if not whole or (whole[-1] if update is None else update) in fetched:
        _remove_others(run, fetched)
    elif update is not None:
        raise UserError(f"{bucket.address} has no whole checkpoint {update}")


def _fetch_checkpoint(bucket: Bucket, objects: Objects, path: Path, say: Say) -> bool:
    """Fetches a checkpoint under another name, and gives it its own if it matches its manifest.

    Returns:
        Whether it is here.
    """
    if path.exists() and is_whole(path) and _is_like(path, objects):
        return True
    partial = path.with_name(f"{PARTIAL}{path.name}-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for name, there in objects.items():
            fetch_file(bucket, name, there, partial / name.split("/", 2)[2])
        check_manifest(partial)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
        return True
    except Missing as error:  # pruned meanwhile by a run under way
        say(f"{error}: {FOLDER}/{path.name} is left out")
    except DamagedError as error:
        reason = str(error).removeprefix(f"{partial} is damaged: ")
        say(f"{bucket.address}/{FOLDER}/{path.name} is damaged ({reason}): it is left out")
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return False


def _is_like(path: Path, objects: Objects) -> bool:
    there = objects[f"{FOLDER}/{path.name}/{MANIFEST}"]
    return checksum((path / MANIFEST).read_bytes()) == there.crc32c


def _remove_others(run: Path, fetched: Collection[int]) -> None:
    """Removes checkpoints that the bucket no longer has, and params without a checkpoint."""
    for checkpoint in checkpoints_of(run):
        if checkpoint.update not in fetched:
            shutil.rmtree(checkpoint.path, ignore_errors=True)
    kept = {checkpoint.update for checkpoint in checkpoints_of(run)}
    for path in [*run.glob("params_*"), *run.glob("seed_*/params_*")]:
        update = params_update(path.relative_to(run).as_posix())
        if update is not None and update not in kept:
            path.unlink(missing_ok=True)


def _append(bucket: Bucket, name: str, there: Object, path: Path, here: bytes) -> bool:
    """Appends what an object has more than a file, if it begins as the file does."""
    try:
        more = bucket.read(name, len(here))
    except Missing:
        return False
    if checksum(more, checksum(here)) != there.crc32c:
        return False
    with path.open("r+b") as file:
        file.seek(len(here))  # another command may write the same there at the same time
        file.write(more)
    _set_time(path, there)
    return True


def _set_time(path: Path, there: Object) -> None:
    """Gives a file the time of its object, by which readers find the newest."""
    os.utime(path, (there.updated.timestamp(),) * 2)
