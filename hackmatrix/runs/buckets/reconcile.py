"""The two sides of a run, its folder here and its folder in a bucket: which of them goes on.

A run may have been trained elsewhere since this folder was left, or beside it after its lease was
lost. Then one side goes on from the other, or both have gone on, each in its own way.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import MANIFEST
from hackmatrix.runs.bucket import Bucket, Object, checksum
from hackmatrix.runs.buckets.fetch import Objects, Say, fetch_run, run_objects
from hackmatrix.runs.buckets.plan import (
    Generations,
    checkpoint_of,
    half_checkpoints,
    own_objects,
    prunable,
    whole_checkpoints,
    write_home,
)
from hackmatrix.runs.checkpoints import FOLDER, checkpoints_of, is_whole
from hackmatrix.runs.exports import later_exports
from hackmatrix.runs.folder import CONFIG, STARTS, RunFolder, starts_in
from hackmatrix.runs.metrics_file import METRICS_FILE, Row, rows_in


class Side(NamedTuple):
    """One side of a run, as far as it shows how the run came to its newest checkpoint."""

    manifests: Mapping[int, str]  # checksums, by the update of each whole checkpoint
    rows: list[Row]
    starts: list[dict[str, Any]]  # one for each process that trained the run

    @property
    def newest(self) -> int:
        """The update of the newest whole checkpoint; -1 if there is none."""
        return max(self.manifests, default=-1)

    def goes_on_from(self, other: "Side") -> bool:
        """Whether this side has all that the other has up to the other's newest checkpoint."""
        until = other.newest
        if until > self.newest:
            return False
        for update in self.manifests.keys() & other.manifests.keys():
            if self.manifests[update] != other.manifests[update]:
                return False
        rows = other._rows_until(until)
        if self._rows_until(until)[: len(rows)] != rows:
            return False
        # Rows may be further apart than checkpoints; the processes tell of what is between.
        starts = other._starts_until(until)
        return not starts or self._starts_until(until) == starts

    def _rows_until(self, update: int) -> list[Row]:
        return [row for row in self.rows if row["update"] <= update]

    def _starts_until(self, update: int) -> list[dict[str, Any]]:
        """Those whose work is in the checkpoint of an update."""
        found: list[dict[str, Any]] = []
        for start in self.starts:  # it makes again what came after its first update
            found = [each for each in found if each["update"] < start["update"]]
            found.append(start)
        return [start for start in found if start["update"] < update]


def settle(
    bucket: Bucket,
    run: Path,
    say: Say,
    *,
    is_folder_named: bool,
    rewind: bool = False,
    update: int | None = None,
) -> None:
    """Brings a run's folder to where its training goes on; the run must be leased.

    If the bucket goes on from the folder, it is fetched; if the folder goes on from the bucket, it
    stays as it is. With `--rewind` the side goes on that is named, and the other's work is dropped.
    A kill at any moment leaves a folder from which this goes on.

    Args:
        bucket: the run's folder in the bucket.
        run: the run's folder here; made if it is missing and the bucket is named.
        say: called with a line about what is fetched, and what is damaged.
        is_folder_named: whether `--resume` names the folder, not the bucket.
        rewind: whether `--rewind` is given.
        update: of the checkpoint that is named; None for the newest.

    Raises:
        UserError: both sides have gone on, and `--rewind` is not given; another process trains in
            the folder; there is no such run or checkpoint in the bucket. Nothing was changed.
        BucketError: the bucket can't be read.
    """
    objects = run_objects(bucket, must_exist=not is_folder_named)
    with contextlib.ExitStack() as stack:
        if run.is_dir():
            stack.enter_context(contextlib.closing(RunFolder(run)))
        here, there = _side_here(run), _side_there(bucket, objects, run)
        if rewind and update is None and there.manifests:
            update = there.newest
        if not is_folder_named and update is not None and update not in there.manifests:
            known = ", ".join(map(str, sorted(there.manifests))) or "none"
            raise UserError(f"{bucket.address} has no checkpoint {update}; there are {known}")
        if _is_to_fetch(here, there, bucket, run, is_folder_named, rewind):
            fetch_run(bucket, objects, run, say, update)
        elif CONFIG in objects and not rewind:
            say(f"{run} is as new as {bucket.address}: nothing is fetched")
        own = _own(run, bucket, objects)
        if rewind:  # it gives up what others have uploaded too
            own = {name: each.generation for name, each in objects.items() if prunable(name)}
        write_home(run, bucket.address, own)


def _is_to_fetch(
    here: Side, there: Side, bucket: Bucket, run: Path, is_folder_named: bool, rewind: bool
) -> bool:
    """Whether the bucket's side goes on.

    Raises:
        UserError: neither may be dropped.
    """
    if rewind:
        return not is_folder_named
    if here.goes_on_from(there) and (run / CONFIG).exists():
        return False
    if there.goes_on_from(here) and not later_exports(run, there.newest):
        return True
    raise UserError(
        f"{run} (update {max(here.newest, 0)}) and {bucket.address} (update "
        f"{max(there.newest, 0)}) are not the same run any more: --resume {run} --rewind drops "
        f"what the bucket has, --resume {bucket.address} --rewind what the folder has; with "
        "--run-name another run goes on from one of them, and both stay"
    )


def _side_here(run: Path) -> Side:
    whole = [checkpoint for checkpoint in checkpoints_of(run) if is_whole(checkpoint.path)]
    return Side(
        {each.update: checksum((each.path / MANIFEST).read_bytes()) for each in whole},
        rows_in(_content(run / METRICS_FILE)),
        starts_in(_content(run / STARTS)),
    )


def _side_there(bucket: Bucket, objects: Objects, run: Path) -> Side:
    def content(name: str) -> bytes:
        there, here = objects.get(name), _content(run / name)
        if there is None or checksum(here) == there.crc32c:
            return here if there is not None else b""
        return bucket.read(name)

    names = {update: f"{FOLDER}/{update}/{MANIFEST}" for update in whole_checkpoints(objects)}
    return Side(
        {update: objects[name].crc32c for update, name in names.items()},
        rows_in(content(METRICS_FILE)),
        starts_in(content(STARTS)),
    )


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _own(run: Path, bucket: Bucket, objects: Objects) -> Generations:
    """Objects that the folder may delete: those that it uploaded or holds; halves of no use."""
    known, half = own_objects(run, bucket.address), set(half_checkpoints(objects))

    def is_own(name: str, there: Object) -> bool:
        if known.get(name) == there.generation or checkpoint_of(name) in half:
            return True
        path = run / name
        return (
            path.is_file()
            and path.stat().st_size == there.size
            and checksum(path.read_bytes()) == there.crc32c
        )

    return {n: o.generation for n, o in objects.items() if prunable(n) and is_own(n, o)}
