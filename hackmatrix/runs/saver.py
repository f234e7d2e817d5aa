"""Saves checkpoints and exported params during training, and removes old ones."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from hackmatrix.runs import exports
from hackmatrix.runs.arrays import Arrays
from hackmatrix.runs.checkpoints import (
    best_checkpoint,
    checkpoints_of,
    remove_checkpoint,
    remove_partial,
    save_checkpoint,
)
from hackmatrix.runs.facts import Facts
from hackmatrix.runs.folder import LostFolderError


class Snapshot(NamedTuple):
    """A copy of a run's state on the host, between two updates."""

    arrays: Arrays
    facts: Facts
    params: Sequence[Mapping[str, Any] | None]  # to export, for each agent; None: not finite


class Saver:
    """Writes snapshots in one thread, in order; a context manager that waits until it is done.

    It keeps the newest checkpoints and the one with the best evaluation. Exported params are
    written after their checkpoint and removed with it.
    """

    def __init__(
        self,
        run: Path,
        keep: int,
        *,
        check: Callable[[], None],
        settle_metrics: Callable[[], None],
        on_saved: Callable[[Facts, list[Path]], None],
        on_failed: Callable[[Facts, OSError], None],
    ) -> None:
        """Starts the thread.

        Args:
            run: the run's folder.
            keep: number of newest checkpoints to keep.
            check: called in the thread before each write; raises `LostFolderError` if the folder is
                no longer the run's, which ends the saving.
            settle_metrics: called in the thread before each checkpoint: a resumed run makes no rows
                before its checkpoint again, so there is none without them; raises an OSError if
                they can't be written, and then the snapshot isn't either.
            on_saved: called in the thread with the checkpoint's folder and the files of its params.
            on_failed: called in the thread if the snapshot can't be written.
        """
        self._run = run
        self._keep = keep
        self._check = check
        self._settle_metrics = settle_metrics
        self._on_saved = on_saved
        self._on_failed = on_failed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._pending: Future[None] | None = None
        self.failed = False  # whether the last snapshot could not be written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Waits until all snapshots are written."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()

    def save(self, snapshot: Snapshot) -> None:
        """Waits for the previous snapshot, then starts to write this one in the thread."""
        self.wait()
        self._pending = self._thread.submit(self._save, snapshot)

    def wait(self) -> None:
        """Waits until the current snapshot is written.

        Raises:
            LostFolderError: the folder is no longer the run's.
        """
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def _save(self, snapshot: Snapshot) -> None:
        facts = snapshot.facts
        try:
            self._check()
            self._settle_metrics()
            remove_partial(self._run)  # a save that failed may have gone on writing for a moment
            path = save_checkpoint(self._run, snapshot.arrays, facts, self._check)
            self._check()
            files = exports.export_params(self._run, facts, snapshot.params)
            if facts.evaluation is not None:
                exports.export_best(self._run)
            self._check()
            self._remove_old()
            self._on_saved(facts, [path, *files])
        except LostFolderError:
            raise
        except OSError as error:
            self.failed = True
            remove_partial(self._run)
            self._on_failed(facts, error)
        else:
            self.failed = False

    def _remove_old(self) -> None:
        best = best_checkpoint(self._run)
        for checkpoint in checkpoints_of(self._run)[: -self._keep]:
            if checkpoint != best:
                exports.remove_exported(self._run, checkpoint.update)
                remove_checkpoint(checkpoint)
