"""Saves checkpoints and exported params of a run, and tracks the best evaluation."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jax

from hackmatrix.core.errors import UserError
from hackmatrix.core.version import __version__
from hackmatrix.environments.registry import environment_id
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.checkpoint_params import params_of
from hackmatrix.learning.run.snapshots import LoopState, arrays_of
from hackmatrix.learning.run.start import Start
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer import seeds
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.runs import exports
from hackmatrix.runs.checkpoints import (
    Evaluation,
    Facts,
    best_checkpoint,
    check_checkpoint,
)
from hackmatrix.runs.folder import LostFolderError, RunFolder
from hackmatrix.runs.saver import Saver, Snapshot
from hackmatrix.runs.trackers import Trackers


class Keeper:
    """Saves a run while training continues; a context manager that waits until all is written."""

    def __init__(
        self,
        run: RunFolder,
        config: TrainConfig,
        trainer: Trainer,
        course: Course,
        console: Console,
        trackers: Trackers,
    ) -> None:
        """Starts the thread that saves; nothing is saved yet."""
        self._folder = run
        self._run = run.path
        self._trainer = trainer
        self._config = config
        self._course = course
        self._console = console
        self._trackers = trackers
        self._saver = Saver(
            run.path,
            config.run.keep_checkpoints,
            check=run.check,
            settle_metrics=run.settle_metrics,
            on_saved=self._report_saved,
            on_failed=self._tell_failure,
        )
        self._last_update: int | None = None  # the update of the last checkpoint
        self._last_time = time.perf_counter()
        self._any_finite = True  # whether any agent's params were finite at the last save
        self._failed = False  # whether final or best params, or rows, could not be written
        self._broken: set[int] = set()  # seeds of agents already reported as not finite

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._saver.__exit__(exc_type, error, trace)
        if exc_type is None:
            self._folder.check()
            self._folder.remove_partial()
            self._settle_metrics()
            if not self._saver.is_best_kept:
                self._console.warn(
                    "the best params could not be kept; --resume makes them again, from the newest "
                    "checkpoint on"
                )

    @property
    def seconds_since_save(self) -> float:
        """Seconds since the last checkpoint, or since the start of this process."""
        return time.perf_counter() - self._last_time

    @property
    def is_saved(self) -> bool:
        """Whether the end of the run was saved completely; valid after the context."""
        return self._any_finite and not self._saver.has_failed and not self._failed

    def is_best(self, score: float) -> bool:
        """Whether a score is finite and better than all before."""
        return self._saver.is_best(score)

    def keep_first(self, first: LoopState, start: Start) -> None:
        """Makes sure that the folder holds the state from which the run resumes.

        Args:
            first: the initial state.
            start: where the run starts.
        """
        if (facts := start.facts_in(self._run)) is None:
            self.keep(first)
            return
        self._last_update = first.update
        # A kill may have come after the checkpoint was written and before its params.
        params = self._finite(self.agents_params(first))
        self._folder.check()
        exports.export_params(self._run, facts, params)
        if not exports.export_best(self._run):
            self._make_best()
        self._saver.remove_old()  # a kill may have come before that too

    def keep(self, now: LoopState, evaluation: Evaluation | None = None) -> None:
        """Copies the state to the host and starts to save it in the background.

        Args:
            now: the run between two updates.
            evaluation: the evaluation of this update, if it is the best so far.
        """
        self._last_time = time.perf_counter()
        self._last_update = now.update
        if (snapshot := self._snapshot(now, evaluation)) is not None:
            self._saver.save(snapshot)

    def finish(self, now: LoopState) -> None:
        """Saves a checkpoint of the run's end, and waits until it is written."""
        if now.update > 0 and now.update != self._last_update:
            self.keep(now)
        self._saver.wait()
        if now.update >= self._course.num_updates:
            try:
                self._export_final(now)
            except LostFolderError:
                raise
            except OSError as error:
                self._failed = True
                self._console.warn(f"final_params can't be written: {error.strerror or error}")

    def is_any_finite(self, now: LoopState) -> bool:
        """Whether the params of any agent are finite."""
        return any(params is not None for params in self._finite(self.agents_params(now)))

    def agents_params(self, now: LoopState) -> list[Any]:
        """The params of each agent, with the feature normalisation folded in."""
        params = jax.device_get(self._trainer.network_params(now.train))
        return seeds.split(params, len(self._config.run.seeds))

    def _make_best(self) -> None:
        """Exports the params of the best checkpoint, which are missing, from its arrays."""
        best = best_checkpoint(self._run)
        assert best is not None
        try:
            checkpoint = check_checkpoint(best.path)
            agents = params_of(checkpoint, checkpoint.read_arrays())
        except UserError as error:
            self._failed = True
            self._console.warn(f"the best params can't be made again: {error}")
            return
        exports.export_params(self._run, checkpoint.facts, [each.params for each in agents])
        exports.export_best(self._run)

    def _export_final(self, now: LoopState) -> None:
        if not exports.is_exported(self._run, now.update):  # its checkpoint was not written
            params = self._finite(self.agents_params(now))
            self._folder.check()
            exports.export_params(self._run, self._facts(now), params)
        self._folder.check()
        exports.export_final(self._run, now.update)

    def _settle_metrics(self) -> None:
        """Writes the rows of metrics that still wait; warns if they can't be written."""
        try:
            self._folder.settle_metrics()
        except LostFolderError:
            raise
        except OSError as error:
            self._failed = True
            self._console.warn(
                f"the last rows of metrics can't be written: {error.strerror}; --resume makes them "
                "again"
            )

    def _snapshot(self, now: LoopState, evaluation: Evaluation | None) -> Snapshot | None:
        """The state copied to the host; None if no agent's params are finite."""
        params = self._finite(self.agents_params(now))
        self._any_finite = any(each is not None for each in params)
        if not self._any_finite:
            self._console.warn(
                f"params are not finite at update {now.update}: not saved, what was saved before "
                "stays"
            )
            return None
        self._warn_broken(now.update, params)
        arrays = arrays_of(self._trainer.gathered(now.train))
        return Snapshot(arrays, self._facts(now, evaluation), params)

    def _facts(self, now: LoopState, evaluation: Evaluation | None = None) -> Facts:
        return Facts(
            update=now.update,
            timesteps=self._course.timesteps(now.update),
            last_logged=now.last_logged,
            environment=environment_id(self._config.environment.name),
            version=__version__,
            config=self._config.as_dict(),
            evaluation=evaluation,
        )

    def _finite(self, agents: Sequence[Any]) -> list[Any | None]:
        """The params of each agent; None for agents whose params are not finite."""
        return [params if seeds.are_finite(params) else None for params in agents]

    def _warn_broken(self, update: int, agents: Sequence[Any | None]) -> None:
        """Warns once about each agent whose params are not finite."""
        seeds_of_agents = zip(self._config.run.seeds, agents, strict=True)
        broken = {seed for seed, params in seeds_of_agents if params is None}
        for seed in sorted(broken - self._broken):
            self._console.warn(
                f"seed {seed}: params are not finite at update {update}: not exported; the other "
                "agents go on"
            )
        self._broken |= broken

    def _report_saved(self, facts: Facts, files: list[Path]) -> None:
        self._console.note("checkpoint", f"update {facts.update:,} saved to {files[0]}")
        self._trackers.artifact(facts.update, files)

    def _tell_failure(self, failure: str, error: OSError) -> None:
        self._console.warn(
            f"{failure}: {error.strerror or error}; what was saved before stays, training goes on"
        )
