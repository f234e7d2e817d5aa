"""The start of a run: its beginning, the params of a file, or what `--resume` names."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.manifest import DamagedError
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.learning.settings.config_file import Settings, read_config, with_num_minibatches
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
)
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.names import PICKLES
from hackmatrix.runs.other_names import checkpoint_of_name, params_of_name
from hackmatrix.runs.params import newest_params


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
