"""Saves checkpoints and exported params during training, and removes old ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from hackmatrix.core.files import sync
from hackmatrix.runs import exports
from hackmatrix.runs.checkpoints import (
    Facts,
    best_checkpoint,
    checkpoints_of,
    remove_checkpoint,
    remove_partial,
    save_checkpoint,
    score_of,
)
from hackmatrix.runs.folder import LostFolderError
from hackmatrix.runs.params import Arrays


class Snapshot(NamedTuple):
    """A copy of a run's state on the host, between two updates."""

    arrays: Arrays
    facts: Facts
    params: Sequence[Mapping[str, Any] | None]  # to export, for each agent; None: not finite


_NO_BEST = "best_params can't be written"
_NOT_TIDY = "old checkpoints can't be removed"


class Saver:
    """Writes snapshots in one thread, in order; a context manager that waits until it is done.

    It keeps the newest checkpoints and the one with the best evaluation. Exported params are
    written after their checkpoint and removed with it.

    A snapshot that can't be written waits. The best one is tried again before each later one and at
    the end, and no later checkpoint is written before it: so a run that is killed meanwhile goes on
    from an earlier checkpoint and makes it again. Of the others the newest is tried again, at the
    end.
    """

    def __init__(
        self,
        run: Path,
        keep: int,
        *,
        check: Callable[[], None],
        settle_metrics: Callable[[], None],
        on_saved: Callable[[Facts, list[Path]], None],
        on_failed: Callable[[str, OSError], None],
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
            on_failed: called in the thread with what can't be done, such as "best_params can't be
                written"; once, however often the same is tried again.
        """
        self._run = run
        self._keep = keep
        self._check = check
        self._settle_metrics = settle_metrics
        self._on_saved = on_saved
        self._on_failed = on_failed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._pending: Future[None] | None = None
        self._waiting: list[Snapshot] = []  # not written yet: the best, and the newest
        self._failures: set[str] = set()  # what could not be done when it was last tried
        best = best_checkpoint(run)
        # In memory: where a file can't be read once, another checkpoint would seem to be the best.
        self._best = None if best is None else best.update
        scores = (None if best is None else score_of(best), exports.score_of_best(run))
        self._best_score = max((score for score in scores if score is not None), default=None)
        self._is_best_exported = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Waits until all snapshots are written; tries once more what failed."""
        try:
            self.wait()
            if self.has_failed and exc_type is None:
                self._save()
        finally:
            self._thread.shutdown()

    @property
    def has_failed(self) -> bool:
        """Whether something that was to be written or removed is not; valid after `wait`."""
        return bool(self._failures)

    @property
    def is_best_kept(self) -> bool:
        """Whether `best_params` are those of the best snapshot; valid after `wait`."""
        return self._is_best_exported

    def is_best(self, score: float) -> bool:
        """Whether a score is finite and better than all before."""
        return math.isfinite(score) and (self._best_score is None or score > self._best_score)

    def save(self, snapshot: Snapshot) -> None:
        """Waits for the previous snapshot, then starts to write this one in the thread."""
        self.wait()
        facts = snapshot.facts
        if facts.score is not None and self.is_best(facts.score):
            self._best, self._best_score, self._is_best_exported = facts.update, facts.score, False
        self._waiting = [each for each in self._waiting if each.facts.update == self._best]
        self._waiting.append(snapshot)
        self._failures = {each for each in self._failures if each in (_NO_BEST, _NOT_TIDY)}
        self._pending = self._thread.submit(self._save)

    def wait(self) -> None:
        """Waits until the current snapshot is written.

        Raises:
            LostFolderError: the folder is no longer the run's.
        """
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def remove_old(self) -> None:
        """Removes the checkpoints that are not to be kept, with their params.

        Raises:
            OSError: one can't be removed.
        """
        for checkpoint in checkpoints_of(self._run)[: -self._keep]:
            if checkpoint.update != self._best:
                exports.remove_export(self._run, checkpoint.update)
                remove_checkpoint(checkpoint)

    def _save(self) -> None:
        if self._waiting:
            newest = self._waiting[-1].facts.update
            self._try(f"the checkpoint of update {newest:,} can't be written", self._write)
        if not self._is_best_exported and all(x.facts.update != self._best for x in self._waiting):
            self._try(_NO_BEST, self._export_best)
        if not self._waiting:  # the best so far stays until a better one is there
            self._try(_NOT_TIDY, self.remove_old)

    def _try(self, failure: str, do: Callable[[], None]) -> None:
        """Does something; if it fails, tells so, unless it did when it was tried before."""
        try:
            self._check()
            do()
        except LostFolderError:
            raise
        except OSError as error:
            if failure not in self._failures:
                self._failures.add(failure)
                self._on_failed(failure, error)
        else:
            self._failures.discard(failure)

    def _write(self) -> None:
        """Writes the snapshots that wait, with their params."""
        self._settle_metrics()
        remove_partial(self._run)  # a save that failed may have gone on writing for a moment
        while self._waiting:
            arrays, facts, params = self._waiting[0]
            made = {each.update: each.path for each in checkpoints_of(self._run)}
            if (path := made.get(facts.update)) is None:
                path = save_checkpoint(self._run, arrays, facts, self._check)
            else:  # all but its params was written when it was tried before
                sync(path.parent)
            self._check()
            files = exports.export_params(self._run, facts, params)
            del self._waiting[0]
            self._on_saved(facts, [path, *files])

    def _export_best(self) -> None:
        assert self._best is not None
        exports.copy_best(self._run, self._best)
        self._is_best_exported = True
