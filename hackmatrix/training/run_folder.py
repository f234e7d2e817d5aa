"""The folder of a run: made or found, locked, and brought to where the run begins."""

import contextlib
import datetime
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from hackmatrix.runs import machine
from hackmatrix.runs.checkpoints import remove_checkpoint, remove_partial
from hackmatrix.runs.folder import RunFolder, read_metrics
from hackmatrix.settings.config import TrainConfig
from hackmatrix.settings.config_file import dump_config
from hackmatrix.settings.options import TrainOptions
from hackmatrix.training import exports, sources
from hackmatrix.training.sources import Source


@contextlib.contextmanager
def open_run(
    config: TrainConfig, options: TrainOptions, source: Source | Path | None
) -> Iterator[RunFolder]:
    """The run's folder, locked. One that was made for nothing is removed.

    Raises:
        UserError: it can't be made, or holds what the source must not go on over.
    """
    run = _run_folder(config, options, source)
    try:
        yield run
    finally:
        run.close()
        run.remove_if_unused()


def _run_folder(
    config: TrainConfig, options: TrainOptions, source: Source | Path | None
) -> RunFolder:
    if isinstance(source, Source) and (own := _own_folder(config, options, source)) is not None:
        run = RunFolder(own)
        try:
            sources.check_rewind(source, run.path, options.rewind)
        except BaseException:
            run.close()
            raise
        return run
    if options.output_dir is not None:
        return RunFolder.create_at(options.output_dir)
    return RunFolder.create(config.checkpoint_dir, options.run_name, options.run_suffix)


def _own_folder(config: TrainConfig, options: TrainOptions, source: Source) -> Path | None:
    """The folder of the run that goes on; None where it goes on in another one."""
    if source.run is None or options.run_suffix:
        return None
    named = options.output_dir
    if options.run_name is not None:
        named = config.checkpoint_dir / options.run_name
    return source.run if named is None or named.resolve() == source.run.resolve() else None


def prepare(run: RunFolder, config: TrainConfig, source: Source | Path | None, update: int) -> None:
    """Brings the folder to where the run begins: what came after that is made again."""
    run.write_config(dump_config(config))
    if not isinstance(source, Source):
        return
    remove_partial(run.path)
    if source.run is not None and source.run.resolve() == run.path.resolve():
        for checkpoint in sources.check_rewind(source, run.path, rewind=True):
            remove_checkpoint(checkpoint)
        exports.cut(run.path, update)
        run.cut_metrics(update)
    elif source.run is not None:
        rows = [row for row in read_metrics(source.run) if row["update"] <= update]
        run.write_metrics(rows)


def start_facts(update: int, chosen: list[jax.Device]) -> dict[str, Any]:
    """What a run's folder keeps of each process that trained it."""
    return {
        "update": update,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "devices": len(chosen),
        **machine.machine(),
        "versions": machine.versions("jaxlib", "numpy", "flax", "optax", "orbax-checkpoint"),
        "commit": machine.commit(),
    }
