"""Creates or finds the folder of a run, locks it, and rewinds it to the run's first update.

Imports no JAX.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hackmatrix.core.errors import UserError
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.start import Start
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config
from hackmatrix.learning.settings.train_options import TrainOptions
from hackmatrix.runs.checkpoints import (
    Checkpoint,
    checkpoints_of,
    remove_checkpoint,
)
from hackmatrix.runs.exports import later_exports, remove_later_exports
from hackmatrix.runs.folder import RunFolder, check_free, lacks_row
from hackmatrix.runs.metrics_file import METRICS_FILE, read_metrics


def check_run_folder(config: TrainConfig, options: TrainOptions, start: Start) -> None:
    """Raises `UserError` where `open_run_folder` would, as far as can be seen without a lock."""
    if (own := _own_folder(config, options, start)) is not None:
        _check_may_drop(own, start, options)
    else:
        names = options.run_name, options.run_suffix
        check_free(config.run.checkpoint_dir, *names, options.output_dir)


@contextlib.contextmanager
def open_run_folder(
    config: TrainConfig, options: TrainOptions, start: Start
) -> Iterator[RunFolder]:
    """The run's folder, locked inside the context; removed if it is new and the run did not start.

    Raises:
        OSError: the disk is full.
        UserError: it can't be created, or holds later checkpoints or params that must not be lost.
    """
    run = _open_folder(config, options, start)
    try:
        if start.is_in(run.path):
            _check_may_drop(run.path, start, options)
        run.remove_partial()
        run.check_space()  # before anything is compiled
        yield run
    finally:
        run.close()
        run.remove_if_unused()


def prepare_run_folder(
    run: RunFolder, config: TrainConfig, options: TrainOptions, start: Start, console: Console
) -> None:
    """Writes the configuration, and rewinds the folder to the update where the run starts.

    Metrics of later updates are removed, as they will be made again; so are later checkpoints and
    params, which are there only if `--rewind` gives them up (see `open_run_folder`). If the run
    continues in another folder, the metrics are copied there.
    """
    run.write_config(dump_config(config))
    if options.output_dir is not None and not start.is_in(run.path):
        run.make_logs()
    if start.is_in(run.path):
        # Params first: while their checkpoint is there, they can be made again.
        remove_later_exports(run.path, start.update)
        for checkpoint in reversed(checkpoints_after(start.update, run.path)):
            remove_checkpoint(checkpoint)
        if dropped := run.cut_metrics(start.update):
            after = f"{dropped:,} rows of metrics after update {start.update:,}"
            console.say(f"{after} are dropped; their updates are made again")
    elif start.run is not None:
        rows = [row for row in read_metrics(start.run) if row["update"] <= start.update]
        run.write_metrics(rows)


def checkpoints_after(update: int, run: Path) -> list[Checkpoint]:
    """The checkpoints of a run after an update."""
    return [checkpoint for checkpoint in checkpoints_of(run) if checkpoint.update > update]


def _open_folder(config: TrainConfig, options: TrainOptions, start: Start) -> RunFolder:
    if (own := _own_folder(config, options, start)) is not None:
        return RunFolder(own)
    if options.output_dir is not None:
        return RunFolder.create_at(options.output_dir)
    return RunFolder.create(config.run.checkpoint_dir, options.run_name, options.run_suffix)


def _own_folder(config: TrainConfig, options: TrainOptions, start: Start) -> Path | None:
    """The folder of the resumed run; None if the run continues in another one."""
    if start.run is None or options.run_suffix:
        return None
    named = options.output_dir
    if options.run_name is not None:
        named = config.run.checkpoint_dir / options.run_name
    return start.run if named is None or start.is_in(named) else None


def _check_may_drop(run: Path, start: Start, options: TrainOptions) -> None:
    """Raises `UserError` if work would be lost, unless `--rewind` gives it up.

    That is later checkpoints and params, and rows that are missing: they are not made again.
    """
    if options.rewind:
        return
    ways = (
        f"--rewind drops what came after {start.update}, --run-name or --output-dir goes on in a "
        "new folder"
    )
    if later := checkpoints_after(start.update, run):
        newer = ", ".join(str(checkpoint.update) for checkpoint in later)
        raise UserError(
            f"{start.run} has newer checkpoints than {start.update} ({newer}): "
            f"--resume {start.run} goes on from the newest, {ways}"
        )
    if trained := later_exports(run, start.update):
        raise UserError(
            f"{start.run} has newer params than its checkpoint {start.update} "
            f"({', '.join(trained)}): {ways}"
        )
    if start.checkpoint is not None and lacks_row(run, start.checkpoint.facts.last_logged):
        last = max((row["update"] for row in read_metrics(run)), default=0)
        raise UserError(
            f"{run / METRICS_FILE} lacks rows before checkpoint {start.update}, its last one is of "
            f"update {last}: put the file back, or --rewind goes on without them, --run-name or "
            "--output-dir in a new folder"
        )
