"""Keeps a bucket like the folder of a run that trains: in a thread, which never blocks an update.

The thread looks at the folder itself, so that nothing else has to tell it of a change: a checkpoint
and exported params get their names when they are complete.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hackmatrix.buckets.lease import Lease, LeaseLost
from hackmatrix.buckets.plan import (
    HOME,
    Step,
    checkpoint_of,
    is_growing,
    is_mirrored,
    prunable,
    steps,
    whole_checkpoints,
)
from hackmatrix.runs.folder import CONFIG
from hackmatrix.storage.address import Address
from hackmatrix.storage.bucket import Bucket, Changed, Object, checksum
from hackmatrix.storage.files import write_atomically

LOOK_SECONDS = 3.0  # between two looks at the folder
ROWS_SECONDS = 30.0  # between two uploads of rows and logs, which grow all the time
END_SECONDS = 300.0  # for what is left at the end of a run
_QUIET_SECONDS = 2.0  # of waiting at the end before a message
_LONGEST_PAUSE = 60.0  # seconds between two tries while the bucket does not answer
_NAMED_FILES = 3  # of those that are left, in a message

Say = Callable[[str], None]


class _Stamp(NamedTuple):
    """What changes when a file is written."""

    size: int
    time: int  # nanoseconds


class Mirror:
    """A context manager around a training; at its end it waits until all is in the bucket."""

    def __init__(self, run: Path, bucket: Bucket, lease: Lease, say: Say, warn: Say) -> None:
        """Starts no thread yet.

        Args:
            run: the run's folder, which need not exist yet.
            bucket: the run's folder in a bucket, used by the mirror alone from then on.
            lease: of that folder.
            say: called with a line about the end of the uploads.
            warn: called with a line if something goes wrong.
        """
        self._run = run
        self._bucket = bucket
        self._lease = lease
        self._say, self._warn = say, warn
        self._remote: dict[str, Object] | None = None  # None: not asked yet
        self._sums: dict[str, tuple[_Stamp, str]] = {}
        self._written: dict[str, float] = {}  # when growing files were uploaded
        self._unseen: set[str] = set()  # objects whose files were not there at the last look
        self._left: list[Step] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        self.is_complete = False  # whether all is in the bucket; valid after the context
        self.is_over = False  # whether another process has taken the run over

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is KeyboardInterrupt:  # a second Ctrl+C waits for nothing
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
        """
        if not (self._run / CONFIG).exists():
            return True  # the run has not started, or its folder is gone: what is uploaded stays
        self._lease.check()
        if self._remote is None:
            write_home(self._run, self._bucket.address)
            self._remote = self._bucket.objects()
        local = self._local(ending)
        gone = self._gone(local)
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
            if checkpoint_of(step.name) is None or checkpoint_of(step.name) not in skipped:
                try:
                    self._do(step)
                except FileNotFoundError:
                    skipped.add(checkpoint_of(step.name))
            self._left.pop(0)
        return not skipped and not gone & self._remote.keys()

    def _do(self, step: Step) -> None:
        assert self._remote is not None
        there = self._remote.get(step.name)
        if step.verb == "delete":
            self._bucket.delete(step.name)
            self._remote.pop(step.name, None)
            return
        path = self._run / step.name
        content = path.read_bytes()
        try:
            written = self._bucket.write(step.name, content, there.generation if there else 0)
        except Changed:
            written = self._after_change(step.name, content)
        self._remote[step.name] = written
        self._written[step.name] = time.monotonic()

    def _after_change(self, name: str, content: bytes) -> Object:
        """Writes an object that is not as expected; the lease tells whether it is ours to write."""
        there = self._bucket.find(name)
        if there is not None and there.crc32c == checksum(content):
            return there  # the answer to an earlier try was lost
        self._lease.renew()
        return self._bucket.write(name, content, there.generation if there else 0)

    def _local(self, ending: bool) -> dict[str, str | None]:
        """Checksums of the folder's files by name; None for one that grows and is not due yet."""
        assert self._remote is not None
        stamps = _stamps(self._run)
        due = {name for name in stamps if ending or not is_growing(name) or self._is_due(name)}
        if whole_checkpoints(stamps) != whole_checkpoints(self._remote):
            due = set(stamps)  # rows come before a checkpoint
        found: dict[str, str | None] = {}
        for name, stamp in stamps.items():
            known = self._sums.get(name)
            if known is not None and known[0] == stamp:
                found[name] = known[1]
            elif name not in due:
                found[name] = None
            else:
                try:
                    found[name] = checksum((self._run / name).read_bytes())
                except FileNotFoundError:
                    continue
                self._sums[name] = (stamp, found[name] or "")
        return found

    def _is_due(self, name: str) -> bool:
        return time.monotonic() - self._written.get(name, -ROWS_SECONDS) >= ROWS_SECONDS

    def _gone(self, local: dict[str, str | None]) -> set[str]:
        """Objects of checkpoints and params that the folder no longer has.

        None if it has no checkpoint any more, as then somebody removes the folder; and none of a
        checkpoint whose manifest is there, as files may vanish while a folder is listed.
        """
        assert self._remote is not None
        here = set(whole_checkpoints(local))
        if not here:
            return set()
        absent = {name for name in self._remote if prunable(name) and name not in local}
        return {name for name in absent if checkpoint_of(name) not in here}

    def _what_is_left(self) -> str:
        names = [step.name for step in list(self._left) if step.verb == "write"]
        more = f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else ""
        return f"{', '.join(names[:_NAMED_FILES]) or 'the last files'}{more}"

    def _again(self) -> str:
        return f"`hackmatrix train --resume {self._run}` uploads it"


def write_home(run: Path, address: Address) -> None:
    """Records in a run's folder which bucket it goes to."""
    write_atomically(run / HOME, (json.dumps({"url": str(address)}) + "\n").encode())


def home_of(run: Path) -> Address | None:
    """The address of the bucket that a run's folder goes to; None if it goes to none.

    A copy under another name goes to none: it is another run.
    """
    try:
        home = Address.of(json.loads((run / HOME).read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return home if home.name == run.resolve().name else None


def _stamps(run: Path) -> dict[str, _Stamp]:
    """Size and time of each file of a run that belongs in the bucket."""
    found = {}
    for folder, folders, files in os.walk(run):
        place = Path(folder).relative_to(run)
        folders[:] = [name for name in folders if is_mirrored((place / name).as_posix())]
        for file in files:
            name = (place / file).as_posix()
            if is_mirrored(name):
                try:
                    status = os.stat(run / name)
                except FileNotFoundError:
                    continue
                found[name] = _Stamp(status.st_size, status.st_mtime_ns)
    return found
