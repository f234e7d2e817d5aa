"""Creates or finds the folder of a run, locks it, and rewinds it to the run's first update."""

import contextlib
import datetime
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.sources import Source
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config
from hackmatrix.learning.settings.options import TrainOptions
from hackmatrix.runs.checkpoints import (
    Checkpoint,
    checkpoints_of,
    remove_checkpoint,
)
from hackmatrix.runs.exports import exported_after, remove_exported_after
from hackmatrix.runs.folder import RunFolder, lacks_row
from hackmatrix.runs.metrics_file import METRICS, read_metrics


@contextlib.contextmanager
def open_run_folder(
    config: TrainConfig, options: TrainOptions, source: Source | Path | None
) -> Iterator[RunFolder]:
    """The run's folder, locked inside the context; removed if it is new and the run did not start.

    Raises:
        OSError: the disk is full.
        UserError: it can't be created, or holds later checkpoints or params that must not be lost.
    """
    run = _locked(config, options, source)
    try:
        if isinstance(source, Source) and source.is_of(run.path):
            _check_may_drop(run.path, source, options)
        run.remove_partial()
        run.check_space()  # before anything is compiled
        yield run
    finally:
        run.close()
        run.remove_if_unused()


def prepare_run_folder(
    run: RunFolder, config: TrainConfig, source: Source | Path | None, console: Console
) -> None:
    """Writes the configuration, and rewinds the folder to the update where the run starts.

    Metrics of later updates are removed, as they will be made again; so are later checkpoints and
    params, which are there only if `--rewind` gives them up (see `open_run_folder`). If the run
    continues in another folder, the metrics are copied there.
    """
    run.write_config(dump_config(config))
    if not isinstance(source, Source):
        return
    if source.is_of(run.path):
        # Params first: while their checkpoint is there, they can be made again.
        remove_exported_after(run.path, source.update)
        for checkpoint in reversed(checkpoints_after(source.update, run.path)):
            remove_checkpoint(checkpoint)
        if dropped := run.cut_metrics(source.update):
            after = f"{dropped:,} rows of metrics after update {source.update:,}"
            console.say(f"{after} are dropped; their updates are made again")
    elif source.run is not None:
        rows = [row for row in read_metrics(source.run) if row["update"] <= source.update]
        run.write_metrics(rows)


def checkpoints_after(update: int, run: Path) -> list[Checkpoint]:
    """The checkpoints of a run after an update."""
    return [checkpoint for checkpoint in checkpoints_of(run) if checkpoint.update > update]


def start_facts(update: int, devices: list[jax.Device]) -> dict[str, Any]:
    """The facts that the folder records for each process of the run, see `RunFolder.add_start`."""
    return {
        "update": update,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "devices": len(devices),
        **machine.machine(),
        "versions": machine.versions("jaxlib", "numpy", "flax", "optax", "orbax-checkpoint"),
        "commit": machine.commit(),
    }


def _locked(config: TrainConfig, options: TrainOptions, source: Source | Path | None) -> RunFolder:
    if isinstance(source, Source) and (own := _own_folder(config, options, source)) is not None:
        return RunFolder(own)
    if options.output_dir is not None:
        return RunFolder.create_at(options.output_dir)
    return RunFolder.create(config.checkpoint_dir, options.run_name, options.run_suffix)


def _own_folder(config: TrainConfig, options: TrainOptions, source: Source) -> Path | None:
    """The folder of the resumed run; None if the run continues in another one."""
    if source.run is None or options.run_suffix:
        return None
    named = options.output_dir
    if options.run_name is not None:
        named = config.checkpoint_dir / options.run_name
    return source.run if named is None or source.is_of(named) else None


def _check_may_drop(run: Path, source: Source, options: TrainOptions) -> None:
    """Raises `UserError` if work would be lost, unless `--rewind` gives it up.

    That is later checkpoints and params, and rows that are missing: they are not made again.
    """
    if options.rewind:
        return
    ways = (
        f"--rewind drops what came after {source.update}, --run-name or --output-dir goes on in a "
        "new folder"
    )
    if later := checkpoints_after(source.update, run):
        newer = ", ".join(str(checkpoint.update) for checkpoint in later)
        raise UserError(
            f"{source.run} has newer checkpoints than {source.update} ({newer}): "
            f"--resume {source.run} goes on from the newest, {ways}"
        )
    if trained := exported_after(run, source.update):
        raise UserError(
            f"{source.run} has newer params than its checkpoint {source.update} "
            f"({', '.join(trained)}): {ways}"
        )
    if source.checkpoint is not None and lacks_row(run, source.checkpoint.facts.last_logged):
        last = max((row["update"] for row in read_metrics(run)), default=0)
        raise UserError(
            f"{run / METRICS} lacks rows before checkpoint {source.update}, its last one is of "
            f"update {last}: put the file back, or --rewind goes on without them, --run-name or "
            "--output-dir in a new folder"
        )
