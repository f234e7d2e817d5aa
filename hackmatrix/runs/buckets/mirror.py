"""Keeps a bucket like the folder of a run that trains: in a thread, which never blocks an update.

The thread looks at the folder itself, so that nothing else has to tell it of a change: a checkpoint
and exported params get their names when they are complete.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import MANIFEST, names_in_manifest
from hackmatrix.runs.bucket import Bucket, Changed, Object, checksum
from hackmatrix.runs.buckets.lease import Lease, LeaseLost
from hackmatrix.runs.buckets.plan import (
    Generations,
    TransferStep,
    checkpoint_of,
    home_of,
    is_growing,
    is_mirrored,
    own_objects,
    prunable,
    steps,
    whole_checkpoints,
    write_home,
)
from hackmatrix.runs.checkpoints import FOLDER, checkpoints_of, read_facts
from hackmatrix.runs.folder import CONFIG, HOME, Identity, LostFolderError, lacks_row
from hackmatrix.runs.metrics_file import METRICS_FILE, last_update, length_until

LOOK_SECONDS = 3.0  # between two looks at the folder
ROWS_SECONDS = 30.0  # between two uploads of rows and logs, which grow all the time
END_SECONDS = 300.0  # for what is left at the end of a run
_QUIET_SECONDS = 2.0  # of waiting at the end before a message
_LONGEST_PAUSE = 60.0  # seconds between two tries while the bucket does not answer
_NAMED_FILES = 3  # of those that are left, in a message

Say = Callable[[str], None]


class _Stamp(NamedTuple):
    """The effects of writing a file."""

    size: int
    time: int  # nanoseconds


class _Rows(NamedTuple):
    """Rows of metrics in the bucket."""

    length: int  # bytes of those up to the newest checkpoint, which no process makes again
    crc32c: str  # of these bytes
    last: int  # update of the last one of all

    def are_in(self, content: bytes) -> bool:
        """Whether a metrics.jsonl begins with those that no process makes again."""
        return checksum(content[: self.length]) == self.crc32c


class Mirror:
    """A context manager around a training; at its end it waits until all is in the bucket."""

    def __init__(
        self, run: Path, bucket: Bucket, lease: Lease, say: Say, warn: Say, *, rewinds: bool = False
    ) -> None:
        """Starts no thread yet.

        Args:
            run: the run's folder, which need not exist yet.
            bucket: the run's folder in a bucket, used by the mirror alone from then on.
            lease: of that folder.
            say: called with a line about the end of the uploads.
            warn: called with a line if something goes wrong.
            rewinds: whether the run gives up rows that the bucket holds.
        """
        self._run = run
        self._bucket = bucket
        self._lease = lease
        self._say, self._warn = say, warn
        self._rewinds = rewinds
        self._identity: Identity | None = None  # None: the run has not started
        self._remote: dict[str, Object] | None = None  # None: not asked yet
        self._own: Generations = {}  # of objects that may be deleted, see `write_home`
        self._rows: _Rows | None = None  # in the bucket; None: not known
        self._sums: dict[str, tuple[_Stamp, str]] = {}
        self._written: dict[str, float] = {}  # when growing files were uploaded
        self._unseen: set[str] = set()  # objects whose files were not there at the last look
        self._left: list[TransferStep] = []
        self._created_folder = False  # whether the folder was made here
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        self.is_complete = False  # whether all is in the bucket; valid after the context
        self.is_over = False  # whether the run was taken over, or its folder or rows are gone
        self._is_left = False  # from then on the lease is lost because it is given up

    def __enter__(self) -> Self:
        # Before the run starts: whoever resumes what a kill left of it has to find its bucket.
        self._created_folder = not self._run.exists()
        with contextlib.suppress(OSError):  # whoever trains there says so
            self._run.mkdir(parents=True, exist_ok=True)
            if home_of(self._run) != self._bucket.address:
                write_home(self._run, self._bucket.address)
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._identity is None and not (self._run / CONFIG).exists():  # it did not start
            with contextlib.suppress(OSError):
                (self._run / HOME).unlink()
                if self._created_folder:
                    self._run.rmdir()
        if exc_type is KeyboardInterrupt:  # a second Ctrl+C waits for nothing
            self._leave()
            return
        self._ending.set()
        self._thread.join(_QUIET_SECONDS)
        if self._thread.is_alive():
            limit = f"for at most {END_SECONDS:.0f} s"
            self._say(f"uploading what is left to {self._bucket.address}, {limit}")
            self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            self._warn(f"{self._what_is_left()} not in {self._bucket.address} yet: {self._again()}")
            self._leave()

    def _leave(self) -> None:
        """Leaves the thread behind; it ends with its lease or the process."""
        self._is_left = True
        self._say = self._warn = lambda _: None

    def _work(self) -> None:
        pause, is_well = LOOK_SECONDS, True
        while True:
            ending = self._ending.wait(0.0 if self._ending.is_set() else pause)
            try:
                settled = self._look(ending)
                if not is_well:
                    self._warn(f"uploads to {self._bucket.address} go on")
                pause, is_well = LOOK_SECONDS, True
                if ending and settled:
                    self.is_complete = True
                    return
            except LeaseLost as error:
                self._warn(f"{error}: nothing more is uploaded; this run goes on in {self._run}")
                self.is_over = not self._is_left
                return
            except LostFolderError as error:
                stays = f"what {self._bucket.address} holds stays"
                self._warn(f"{error}: nothing more is uploaded, {stays}")
                self.is_over = True
                return
            except OSError as error:
                if is_well:
                    self._warn(f"{error}; training goes on, and the upload is tried again")
                pause = LOOK_SECONDS if is_well else min(2 * pause, _LONGEST_PAUSE)
                is_well = False
                if ending:
                    time.sleep(LOOK_SECONDS)

    def _look(self, ending: bool) -> bool:
        """Makes the bucket like the folder; returns whether nothing is left to be done.

        Raises:
            BucketError: the bucket did not take something.
            LeaseLost: another process has taken the run over.
            LostFolderError: the folder is no longer the run's, or rows are gone.
        """
        if not self._has_begun():
            return True
        self._lease.check()
        if self._remote is None:
            self._own = own_objects(self._run, self._bucket.address)
            write_home(self._run, self._bucket.address, self._own)
            self._remote = self._bucket.objects()
        local = self._local_checksums(ending)
        self._know_rows(local)
        gone = self._objects_to_delete(local)
        self._left = steps(
            {name: crc for name, crc in local.items() if crc is not None},
            {name: there.crc32c for name, there in self._remote.items()},
            gone & self._unseen,
        )
        self._unseen = gone
        skipped: set[int | None] = set()  # checkpoints that were removed meanwhile
        while self._left:
            step = self._left[0]
            self._lease.check()
            self._check_folder()
            update = checkpoint_of(step.name)
            if update is None or update not in skipped:
                try:
                    self._do(step)
                except FileNotFoundError:
                    skipped.add(update)
            self._left.pop(0)
        return not skipped and not gone & self._remote.keys()

    def _has_begun(self) -> bool:
        """Whether the run has started; checks that its folder is the one in which it did."""
        if self._identity is None:
            if not (self._run / CONFIG).exists():
                return False
            with contextlib.suppress(FileNotFoundError):  # it was deleted at this moment
                self._identity = Identity(self._run)
        else:
            self._check_folder()
        return self._identity is not None

    def _check_folder(self) -> None:
        assert self._identity is not None
        if not self._identity.holds() or not (self._run / CONFIG).exists():
            raise LostFolderError(f"{self._run} was deleted, moved or replaced")

    def _do(self, step: TransferStep) -> None:
        if step.verb == "delete":
            self._delete(step.name)
        else:
            self._write(step.name)

    def _delete(self, name: str) -> None:
        assert self._remote is not None
        try:
            self._bucket.delete(name, self._remote[name].generation)
        except Changed:  # another process has written it: what it is now decides
            del self._remote[name]
            if (there := self._bucket.find(name)) is not None:
                self._remote[name] = there
            raise
        del self._remote[name]
        if self._own.pop(name, None) is not None:
            self._record()

    def _write(self, name: str) -> None:
        """Writes an object.

        Raises:
            FileNotFoundError: the file was removed meanwhile, or may not be written yet.
        """
        assert self._remote is not None
        content = (self._run / name).read_bytes()
        self._check_write(name, content)
        there = self._remote.get(name)
        try:
            written = self._bucket.write(name, content, there.generation if there else 0)
        except Changed:
            written = self._after_change(name, content)
        self._remote[name] = written
        self._written[name] = time.monotonic()
        if name == METRICS_FILE:
            self._rows = self._rows_of(content)
        if prunable(name):
            self._own[name] = written.generation
            self._record()

    def _record(self) -> None:
        """Records what the folder may delete; what a full disk does not take, with the next."""
        with contextlib.suppress(OSError):
            write_home(self._run, self._bucket.address, self._own)

    def _know_rows(self, local: dict[str, str | None]) -> None:
        """Reads the rows here, if they are those in the bucket and not known yet."""
        assert self._remote is not None
        there = self._remote.get(METRICS_FILE)
        if self._rows is None and there is not None and local.get(METRICS_FILE) == there.crc32c:
            with contextlib.suppress(FileNotFoundError):
                self._rows = self._rows_of((self._run / METRICS_FILE).read_bytes())

    def _rows_of(self, content: bytes) -> _Rows:
        newest = max((each.update for each in checkpoints_of(self._run)), default=-1)
        length = length_until(content, newest)
        return _Rows(length, checksum(content[:length]), last_update(content))

    def _check_write(self, name: str, content: bytes) -> None:
        """Checks that an object may be written.

        Raises:
            FileNotFoundError: not yet, or what belongs to it was removed meanwhile.
            LostFolderError: rows are gone.
        """
        known = None if self._rewinds else self._rows
        if name == METRICS_FILE and known is not None and not known.are_in(content):
            raise LostFolderError(f"{self._run / METRICS_FILE} lacks rows that were in it")
        if (update := checkpoint_of(name)) is not None:
            self._check_rows(update)
        if name == f"{FOLDER}/{update}/{MANIFEST}":
            assert self._remote is not None
            for file in names_in_manifest(content):
                if f"{FOLDER}/{update}/{file}" not in self._remote:
                    raise FileNotFoundError(file)

    def _check_rows(self, update: int) -> None:
        """Checks that the bucket has the rows that a checkpoint of this folder was written after.

        Raises:
            FileNotFoundError: not yet.
            LostFolderError: the folder does not have them either.
        """
        try:
            logged = read_facts(self._run / FOLDER / str(update)).last_logged
        except UserError:  # removed meanwhile; or damaged, which a reader finds
            return
        if self._rows is not None and self._rows.last >= logged:
            return
        path = self._run / METRICS_FILE
        if not self._rewinds and lacks_row(self._run, logged):
            raise LostFolderError(f"{path} lacks rows before checkpoint {update}")
        if path.exists() and last_update(path.read_bytes()) >= logged:
            raise FileNotFoundError(path)

    def _after_change(self, name: str, content: bytes) -> Object:
        """Writes an object that is not as expected; the lease tells whether it is ours to write."""
        there = self._bucket.find(name)
        if there is not None and there.crc32c == checksum(content):
            return there  # the answer to an earlier try was lost
        self._lease.renew()
        return self._bucket.write(name, content, there.generation if there else 0)

    def _local_checksums(self, ending: bool) -> dict[str, str | None]:
        """Checksums of the folder's files by name; None for one that grows and is not due yet."""
        assert self._remote is not None
        stamps = _stamps(self._run)
        due = {name for name in stamps if ending or not is_growing(name) or self._is_due(name)}
        if whole_checkpoints(stamps) != whole_checkpoints(self._remote):
            due = set(stamps)  # rows come before a checkpoint
        checksums: dict[str, str | None] = {}
        for name, stamp in stamps.items():
            known = self._sums.get(name)
            if known is not None and known[0] == stamp:
                checksums[name] = known[1]
            elif name not in due:
                checksums[name] = None
            else:
                try:
                    checksums[name] = checksum((self._run / name).read_bytes())
                except FileNotFoundError:
                    continue
                self._sums[name] = (stamp, checksums[name] or "")
        return checksums

    def _is_due(self, name: str) -> bool:
        return time.monotonic() - self._written.get(name, -ROWS_SECONDS) >= ROWS_SECONDS

    def _objects_to_delete(self, local: dict[str, str | None]) -> set[str]:
        """Objects of checkpoints and params that the folder no longer has.

        None that the folder did not upload or fetch itself. None if it has no checkpoint any more,
        as then somebody removes the folder; and none of a checkpoint whose manifest is there, as
        files may vanish while a folder is listed.
        """
        assert self._remote is not None
        here = set(whole_checkpoints(local))
        if not here:
            return set()
        own = {n for n, o in self._remote.items() if self._own.get(n) == o.generation}
        absent = {name for name in own if prunable(name) and name not in local}
        return {name for name in absent if checkpoint_of(name) not in here}

    def _what_is_left(self) -> str:
        names = [step.name for step in list(self._left) if step.verb == "write"]
        more = f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else ""
        return f"{', '.join(names[:_NAMED_FILES]) or 'the last files'}{more}"

    def _again(self) -> str:
        return f"`hackmatrix train --resume {self._run}` uploads it"


def _stamps(run: Path) -> dict[str, _Stamp]:
    """Size and time of each file of a run that belongs in the bucket."""
    stamps = {}
    for folder, folders, files in os.walk(run):
        relative = Path(folder).relative_to(run)
        folders[:] = [name for name in folders if is_mirrored((relative / name).as_posix())]
        for file in files:
            name = (relative / file).as_posix()
            if is_mirrored(name):
                try:
                    status = os.stat(run / name)
                except FileNotFoundError:
                    continue
                stamps[name] = _Stamp(status.st_size, status.st_mtime_ns)
    return stamps
