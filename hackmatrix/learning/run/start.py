"""The start of a run: its beginning, the params of a file, or what `--resume` names; its folder."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import DamagedError
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.settings.config_file import (
    Settings,
    dump_config,
    read_config,
    with_num_minibatches,
)
from hackmatrix.learning.trainer.config import AlgorithmConfig, Course
from hackmatrix.runs.checkpoints import (
    FACTS,
    FOLDER,
    CheckedCheckpoint,
    Checkpoint,
    Facts,
    check_checkpoint,
    checkpoints_of,
    is_whole,
    read_facts,
    remove_checkpoint,
)
from hackmatrix.runs.exports import later_exports, remove_later_exports
from hackmatrix.runs.folder import CONFIG, RunFolder, check_free, lacks_row
from hackmatrix.runs.metrics_file import METRICS_FILE, read_metrics
from hackmatrix.runs.names import PICKLES
from hackmatrix.runs.other_names import checkpoint_of_name, params_of_name
from hackmatrix.runs.params import newest_params

if TYPE_CHECKING:
    from hackmatrix.learning.reporting.console import Console


class Start(NamedTuple):
    """Where a run starts: `BEGINNING`, the params of a file, or where another run stopped."""

    params: Path | None = None  # the file
    run: Path | None = None  # folder of the other run; None if its checkpoint is in none
    checkpoint: CheckedCheckpoint | None = None  # None: the run ended before its first one
    settings: Settings | None = None  # the other run's last ones

    @property
    def is_beginning(self) -> bool:
        """Whether nothing is resumed."""
        return self == BEGINNING

    @property
    def update(self) -> int:
        """Number of updates made so far."""
        return 0 if self.checkpoint is None else self.checkpoint.facts.update

    def course(self, config: AlgorithmConfig) -> Course:
        """The relation of updates to timesteps from here on."""
        timesteps = 0 if self.checkpoint is None else self.checkpoint.facts.timesteps
        return Course(config.batch_size, config.total_timesteps, self.update, timesteps)

    def is_in(self, run: Path) -> bool:
        """Whether the other run is the one in this folder."""
        return self.run is not None and self.run.resolve() == run.resolve()

    def facts_in(self, run: Path) -> Facts | None:
        """The facts of the checkpoint if it is in this run's folder, else None."""
        return self.checkpoint.facts if self.checkpoint is not None and self.is_in(run) else None


BEGINNING = Start()


def find_start(
    options: TrainOptions, checkpoint_dir: Path, fetch: Callable[[str, Path], Path] | None = None
) -> Start:
    """Finds what `--resume` or `--resume-run` names: a run, a checkpoint, params, or nothing.

    All files of a checkpoint are read and checked here, and nowhere else.

    Args:
        options: options of this command.
        checkpoint_dir: folder of runs.
        fetch: downloads a run that is not here: (id, folder) -> folder.

    Raises:
        UserError: it does not exist, can't be resumed, or is damaged; then the message also names
            the newest intact checkpoint before it.
    """
    if options.resume_run is not None:
        run = checkpoint_dir / options.resume_run
        if not run.is_dir():
            if fetch is None:
                raise UserError(f"--resume-run {options.resume_run}: there is no run {run}")
            fetch(options.resume_run, run)
        return _in_run(run, _newest(run, run))
    if options.resume is None:
        return BEGINNING
    path = Path(options.resume)
    try:
        named = _params_or_checkpoint(path)
    except UserError as error:
        raise UserError(f"--resume {error}") from None
    return Start(params=named) if isinstance(named, Path) else _in_run(path, named)


def _params_or_checkpoint(path: Path) -> Path | Checkpoint | None:
    """The file of params, or the checkpoint, that a path means; None if its run has none yet."""
    if path.suffix == ".npz" or (path.suffix in PICKLES and path.is_file()):
        params = params_of_name(path)
        if not params.is_file():
            raise UserError(f"{path}: there is no such file")
        return params
    return _checkpoint(path)


def _in_run(run: Path, newest: Checkpoint | None) -> Start:
    if newest is None:
        return Start(run=run, settings=_settings_of(run))
    try:
        checkpoint = check_checkpoint(newest.path)
    except DamagedError as error:
        raise UserError(f"{error}; {_way_out(newest)}") from None
    settings, owner = checkpoint.facts.config, _run_of(newest)
    if owner is not None and (owner / CONFIG).exists():
        settings = settings | _settings_of(owner)
    return Start(None, owner, checkpoint, settings)


def _settings_of(run: Path) -> Settings:
    return with_num_minibatches(read_config(run / CONFIG))


def _run_of(checkpoint: Checkpoint) -> Path | None:
    folder = checkpoint.path.parent
    return folder.parent if folder.name == FOLDER else None


def _checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint for a path: itself, the newest of a run, or one by its name in the original.

    None if the path is a run without a checkpoint yet.
    """
    if path.is_dir():
        if (path / CONFIG).exists():
            return _newest(path, path)
        if path.parent.name == FOLDER and path.name.isdecimal():
            return Checkpoint(path, int(path.name))
        if (path / FACTS).exists():  # a checkpoint that was copied to another place
            return Checkpoint(path, read_facts(path).update)
        return _newest(path.parent if path.name == FOLDER else path, path)
    if path.is_file():
        raise UserError(
            f"{path}: is neither a run's folder, nor a checkpoint, nor a file of params "
            f"(.npz, {', '.join(PICKLES)})"
        )
    if (named := checkpoint_of_name(path)) is not None:
        return named
    raise UserError(f"{path}: there is no such file or folder")


def _newest(run: Path, named: Path) -> Checkpoint | None:
    checkpoints = checkpoints_of(run)
    begun = run == named and (run / CONFIG).exists() and newest_params(run) is None
    if not checkpoints and begun:
        return None
    if not checkpoints:
        params = newest_params(run)
        hint = f"; a new run can start from its params: --resume {params}" if params else ""
        raise UserError(f"{named}: {run} has no checkpoint{hint}")
    return checkpoints[-1]


def _way_out(damaged: Checkpoint) -> str:
    run = _run_of(damaged)
    for checkpoint in reversed(checkpoints_of(run) if run else []):
        if checkpoint.update < damaged.update and is_whole(checkpoint.path):
            return f"the one before it is whole: --resume {checkpoint.path} --rewind"
    return "there is no whole checkpoint before it"


# --- Creates or finds the folder of a run, locks it, and rewinds it to the run's first update -----


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
    run: RunFolder, config: TrainConfig, options: TrainOptions, start: Start, console: "Console"
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
