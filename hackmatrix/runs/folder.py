"""The folder of a run: config.yaml, metrics.jsonl, log.txt, events/, checkpoints/, params.

In a run of `--output-dir` the log and the events are in `logs/`, where other trainers have them.
"""

import contextlib
import errno
import json
import os
import weakref
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import PARTIAL, open_no_link, remove_partial, write_atomically
from hackmatrix.runs.checkpoints import checkpoints_of
from hackmatrix.runs.checkpoints import remove_partial as remove_partial_checkpoints
from hackmatrix.runs.metrics_file import METRICS_FILE, MetricsFile, Row, read_metrics
from hackmatrix.runs.names import next_name
from hackmatrix.runs.params import agent_folders

CONFIG, LOG, PROFILES = "config.yaml", "log.txt", "profiles"
LOGS = "logs"
TRIALS = "trials"  # the runs of a search, in its folder (`hackmatrix tune`)
STARTS = "starts.jsonl"
HOME = "bucket.json"  # names the bucket that the run goes to, see `buckets/plan.py`
_LOCK = ".lock"
_LEAST_SPACE = 2**20  # bytes; a run that has less can't save anything


class LostFolderError(OSError):
    """A run's folder, or its rows, were deleted, moved or replaced while its process trained."""


class Identity:
    """The identity of a run's folder, by which another that takes its place is found out.

    It holds the lock file open: meanwhile its inode can't be another file's.
    """

    def __init__(self, run: Path) -> None:
        """Takes the folder that is there now.

        Raises:
            FileNotFoundError: it is none that was ever locked.
        """
        self._path = run / _LOCK
        self._handle = os.open(self._path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._handle)

    def holds(self) -> bool:
        """Whether the folder is still the one that it was."""
        try:
            return os.path.samestat(os.fstat(self._handle), self._path.stat())
        except (FileNotFoundError, NotADirectoryError):
            return False


class RunFolder:
    """A run's folder, locked by this process, with methods that write to it.

    Each of them first checks that the folder is still this run's, see `check`.
    """

    def __init__(self, path: Path) -> None:
        """Locks an existing folder.

        Raises:
            UserError: another process is training this run, or the folder can't be written to, or
                a file of it is a link.
        """
        for name in (_LOCK, CONFIG, METRICS_FILE, LOG, LOGS, STARTS):
            if (path / name).is_symlink():
                raise UserError(
                    f"{path / name} is a link: a run writes to its own files alone; remove the link"
                )
        self.path = path
        self._created = False
        self._is_ours = False  # whether the folder was still this run's when it was unlocked
        self._lock = FileLock(path / _LOCK, blocking=False)
        try:
            self._lock.acquire()
            self._identity = Identity(path)
            self._metrics = MetricsFile(path)
        except Timeout:
            raise UserError(f"{path} is being trained by another process") from None
        except OSError as error:
            raise _creation_error(error, str(path)) from error

    def close(self) -> None:
        """Unlocks the folder."""
        self._is_ours = self._identity.holds()
        self._lock.release()

    def check(self) -> None:
        """Checks that the folder is still the one that was locked, with the rows that it had.

        Raises:
            LostFolderError: it is gone, or is another run's of the same name, or rows are gone.
        """
        self._check_identity()
        if not self._metrics.is_whole():
            self._check_identity()  # of a folder that goes meanwhile, the rows go with it
            raise LostFolderError(
                f"{self.path / METRICS_FILE} was deleted or cut: a checkpoint would be without the "
                "rows before it, so nothing more is written there"
            )

    def _check_identity(self) -> None:
        if not self._identity.holds():
            raise LostFolderError(
                f"{self.path} was deleted, moved or replaced: it is no longer this run's folder, "
                "so nothing more is written there"
            )

    @classmethod
    def create(cls, parent: Path, name: str | None, suffix: str | None) -> "RunFolder":
        """Creates `{parent}/{name}`, or takes over one that another process left unused.

        Args:
            parent: folder of runs, made if missing.
            name: name of the run; None for the next free name of today.
            suffix: added to the name after a dash.

        Raises:
            UserError: there is a run of this name already, or the folder can't be made.
            OSError: the disk is full.
        """
        path = _new_folder(parent, name, f"-{suffix}" if suffix else "")
        return cls._take(path, _refusal_of_name(path))

    @classmethod
    def create_at(cls, path: Path) -> "RunFolder":
        """Creates the folder `path`, or uses an empty one.

        Raises:
            UserError: the folder is not empty, or can't be created.
            OSError: the disk is full.
        """
        is_new = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _creation_error(error, f"--output-dir {path}") from error
        run = cls._take(path, _refusal_of_output(path))
        run._created = is_new
        return run

    @classmethod
    def _take(cls, path: Path, refusal: str) -> "RunFolder":
        """Locks a folder that is not used yet; else raises `UserError` with this text."""
        if not _is_unused(path):
            raise UserError(refusal)
        run = cls(path)
        run._created = True
        if not _is_unused(path):  # another process was faster
            run.close()
            raise UserError(refusal)
        return run

    def check_space(self) -> None:
        """Checks that there is room for more than a few small files.

        Raises:
            OSError: the disk is full, or the system limits the size of files.
        """
        probe = self.path / f"{PARTIAL}probe-{os.getpid()}"
        try:
            write_atomically(probe, bytes(_LEAST_SPACE))
        finally:
            probe.unlink(missing_ok=True)

    def remove_if_unused(self) -> None:
        """Removes the folder if it was created for a run that did not start; after `close`."""
        if self._is_ours and not (self.path / CONFIG).exists():
            (self.path / _LOCK).unlink(missing_ok=True)
            remove_partial(self.path)
            if self._created:
                with contextlib.suppress(OSError):  # something else was put there
                    self.path.rmdir()

    def newest_checkpoint(self) -> Path | None:
        """The folder of the newest checkpoint; None if there is none."""
        checkpoints = checkpoints_of(self.path)
        return checkpoints[-1].path if checkpoints else None

    def write_config(self, text: str) -> None:
        """Replaces config.yaml."""
        self.check()
        write_atomically(self.path / CONFIG, text.encode())

    def make_logs(self) -> None:
        """Makes the folder in which the log and the events will be."""
        self.check()
        (self.path / LOGS).mkdir(exist_ok=True)

    def add_start(self, facts: Mapping[str, Any]) -> None:
        """Appends a line to starts.jsonl: one for each process that trained this run."""
        self.check()
        with open(self.path / STARTS, "a", encoding="utf-8", opener=open_no_link) as file:
            file.write(json.dumps(facts) + "\n")

    def add_metrics(self, row: Mapping[str, Any]) -> None:
        """Appends a line to metrics.jsonl, without values that are None; NaN becomes null.

        A line that can't be written waits, and is written with a later one or by `settle_metrics`.

        Raises:
            OSError: this line can't be written, nor those that wait.
        """
        self.check()
        self._metrics.add(row)

    def settle_metrics(self) -> None:
        """Writes the lines of metrics that wait, and returns when all are on disk.

        Raises:
            OSError: they can't be written; they go on waiting.
        """
        self.check()
        self._metrics.settle()

    def metrics(self) -> list[Row]:
        """All rows of metrics.jsonl, without a line that a kill truncated."""
        return list(read_metrics(self.path))

    def cut_metrics(self, update: int) -> int:
        """Removes the rows after `update`; returns their number."""
        rows = self.metrics()
        kept = [row for row in rows if row["update"] <= update]
        self.write_metrics(kept)
        return len(rows) - len(kept)

    def remove_partial(self) -> None:
        """Removes what killed processes left half-written. No other process may be writing."""
        remove_partial_checkpoints(self.path)
        for folder in (self.path, *agent_folders(self.path)):
            remove_partial(folder)

    def write_metrics(self, rows: list[Row]) -> None:
        """Replaces metrics.jsonl."""
        self._check_identity()
        self._metrics.replace(rows)


def check_free(parent: Path, name: str | None, suffix: str | None, output: Path | None) -> None:
    """Raises `UserError` where `RunFolder.create` or `create_at` would, without making anything.

    Args:
        parent: folder of runs.
        name: name of the run, if it was chosen.
        suffix: added to the name after a dash.
        output: the run's folder, instead of a name.
    """
    if output is not None and output.exists() and not _is_unused(output):
        raise UserError(_refusal_of_output(output))
    if output is None and name is not None:
        path = parent / (f"{name}-{suffix}" if suffix else name)
        if path.exists() and not _is_unused(path):
            raise UserError(_refusal_of_name(path))


def log_of(run: Path) -> Path:
    """The file of a run's log."""
    return run / LOGS / "training.log" if (run / LOGS).is_dir() else run / LOG


def events_of(run: Path) -> Path:
    """The folder of a run's events for TensorBoard."""
    return run / LOGS if (run / LOGS).is_dir() else run / "events"


def starts_in(content: bytes) -> list[dict[str, Any]]:
    """The lines in the content of a starts.jsonl, without those that were truncated."""
    found = []
    for line in content.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict) and type(each.get("update")) is int]


def lacks_row(run: Path, logged: int) -> bool:
    """Whether rows of metrics are gone that a checkpoint of this run was written after.

    Args:
        run: the run's folder.
        logged: `Facts.last_logged` of the checkpoint. Rows of updates before the first process of
            this folder need not be in it: that one may have gone on from a checkpoint alone.
    """
    path = run / STARTS
    starts = starts_in(path.read_bytes()) if path.exists() else []
    first = min((start["update"] for start in starts), default=0)
    begun = bool(starts) or (run / CONFIG).exists()
    return begun and logged > first and all(row["update"] != logged for row in read_metrics(run))


def _refusal_of_name(path: Path) -> str:
    return f"the run {path} exists: choose another --run-name, or --resume {path}"


def _refusal_of_output(path: Path) -> str:
    what = "is a run" if (path / CONFIG).exists() else "is not empty"
    return f"--output-dir {path} {what}: choose another folder, or --resume {path}"


def _new_folder(parent: Path, name: str | None, suffix: str) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            chosen = name or next_name((p.name for p in parent.iterdir()), date.today())
            path = parent / (chosen + suffix)
            try:
                path.mkdir()
                return path
            except FileExistsError:
                if name:
                    return path  # it may be unused, see `_is_unused`
                # Another run took the number between the two calls: try the next one.
    except OSError as error:
        raise _creation_error(error, f"--checkpoint-dir {parent}") from error


def _is_unused(path: Path) -> bool:
    """Whether a folder holds nothing but what a process leaves that is killed while it compiles."""
    return path.is_dir() and all(
        each.name in (_LOCK, HOME) or each.name.startswith(PARTIAL) for each in path.iterdir()
    )


def _creation_error(error: OSError, what: str) -> UserError | OSError:
    """The error for a folder that can't be made: the user's mistake, unless the disk is full."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return error
    return UserError(f"{what}: {error.strerror or error}")
