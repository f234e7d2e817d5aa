"""Saves checkpoints while training goes on, and keeps as many as are wanted."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from hackmatrix.errors import UserError
from hackmatrix.runs.checkpoints import (
    Arrays,
    Checkpoint,
    checkpoints_of,
    read_facts,
    remove_checkpoint,
    save_checkpoint,
)

EVALUATION = "evaluation"
SCORE = "mean_return"  # of an evaluation: the highest is the best


class Snapshot(NamedTuple):
    """A moment of a run, copied off the devices."""

    update: int
    arrays: Arrays
    facts: Mapping[str, Any]  # `evaluation` among them: None, or that of this moment
    params: Sequence[Mapping[str, Any] | None]  # for sharing, of each agent that is finite


class Saver:
    """One thread that writes snapshots, one after the other; a context manager that waits for it.

    Kept are the newest checkpoints and the one whose evaluation was best.
    """

    def __init__(
        self,
        run: Path,
        keep: int,
        *,
        on_saved: Callable[[Snapshot, Path], None],
        on_failed: Callable[[Snapshot, OSError], None],
    ) -> None:
        """Prepares to save.

        Args:
            run: the run's folder.
            keep: newest checkpoints to keep.
            on_saved: called with the snapshot and its path, in the thread.
            on_failed: called where the snapshot could not be written, in the thread.
        """
        self._run = run
        self._keep = keep
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
        """Waits until all is written."""
        self.wait()
        self._thread.shutdown()

    def save(self, snapshot: Snapshot) -> None:
        """Starts to write, after the snapshot before is written."""
        self.wait()
        self._pending = self._thread.submit(self._save, snapshot)

    def wait(self) -> None:
        """Waits for the snapshot under way."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def _save(self, snapshot: Snapshot) -> None:
        try:
            path = save_checkpoint(self._run, snapshot.update, snapshot.arrays, snapshot.facts)
            self._remove_old()
            self._on_saved(snapshot, path)
        except OSError as error:
            self.failed = True
            self._on_failed(snapshot, error)
        else:
            self.failed = False

    def _remove_old(self) -> None:
        checkpoints = checkpoints_of(self._run)
        best = best_checkpoint(self._run)
        for checkpoint in checkpoints[: -self._keep]:
            if checkpoint != best:
                remove_checkpoint(checkpoint)


def best_checkpoint(run: Path) -> Checkpoint | None:
    """The checkpoint with the highest evaluation, the oldest among equals; None without any."""
    scores = [(score_of(checkpoint), checkpoint) for checkpoint in checkpoints_of(run)]
    evaluated = [(score, checkpoint) for score, checkpoint in scores if score is not None]
    return max(evaluated, key=lambda pair: pair[0])[1] if evaluated else None


def score_of(checkpoint: Checkpoint) -> float | None:
    """The score of the evaluation that belongs to a checkpoint, if there is one."""
    try:
        evaluation = read_facts(checkpoint.path).get(EVALUATION)
    except UserError:  # damaged ones are told when they are used
        return None
    return None if evaluation is None else float(evaluation[SCORE])
