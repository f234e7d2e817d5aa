"""What a run continues: a checkpoint found by its path, and what of it fits the configuration."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.errors import UserError
from hackmatrix.runs.checkpoints import (
    FOLDER,
    Arrays,
    Checkpoint,
    Facts,
    check_checkpoint,
    checkpoints_of,
    load_checkpoint,
    read_facts,
)
from hackmatrix.runs.folder import CONFIG as CONFIG_FILE
from hackmatrix.runs.params import Exported, load_params, newest_params
from hackmatrix.storage.manifest import DamagedError
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.config_file import read_config, with_num_minibatches
from hackmatrix.training.options import TrainOptions

_ORIGINAL = re.compile(r"checkpoint(?:_(?P<update>\d+))?\.(pkl|pt)")

CONFIG, ENVIRONMENT = "config", "environment"  # facts of a checkpoint


class Source(NamedTuple):
    """What is resumed, before its arrays are read."""

    run: Path | None  # the folder that it lies in, if it lies in a run's folder
    checkpoint: Checkpoint | None  # None: the run was ended before its first one
    facts: Facts

    @property
    def update(self) -> int:
        """Updates made so far."""
        return 0 if self.checkpoint is None else self.checkpoint.update


def find_source(options: TrainOptions, checkpoint_dir: Path) -> Source | Path | None:
    """What `--resume` or `--resume-run` name: a checkpoint, a file of params, or nothing.

    Raises:
        UserError: there is no such thing, it can't be resumed, or it is damaged.
    """
    if options.resume_run is not None:
        run = checkpoint_dir / options.resume_run
        if not run.is_dir():
            raise UserError(f"--resume-run {options.resume_run}: there is no run {run}")
        return _source(run, _newest(run, run))
    if options.resume is None:
        return None
    path = Path(options.resume)
    if path.suffix == ".npz" and (path.exists() or not _ORIGINAL.fullmatch(path.name)):
        return path
    return _source(path, _checkpoint(path))


def load_arrays(checkpoint: Checkpoint) -> Arrays:
    """The arrays of a checkpoint.

    Raises:
        UserError: a file of it is damaged; names it, and the newest whole checkpoint before it.
    """
    try:
        return load_checkpoint(checkpoint.path)[0]
    except DamagedError as error:
        raise UserError(f"{error}; {_way_out(checkpoint)}") from None


def load_exported(path: Path, environment: str) -> Exported:
    """Params to start from.

    Raises:
        UserError: they can't be read, or belong to another environment.
    """
    exported = load_params(path)
    known = exported.about.get(ENVIRONMENT, environment)
    if known != environment:
        raise UserError(f"{path}: was trained on {known}, not on {environment}")
    return exported


def check_rewind(source: Source, run: Path, rewind: bool) -> list[Checkpoint]:
    """The checkpoints that go where a run goes on in its own folder from an older one.

    Raises:
        UserError: there are some, and nobody said that they may go.
    """
    later = [c for c in checkpoints_of(run) if c.update > source.update]
    if later and not rewind:
        newer = ", ".join(str(checkpoint.update) for checkpoint in later)
        raise UserError(
            f"{run} has newer checkpoints than {source.update} ({newer}): "
            f"--resume {run} goes on from the newest, --rewind drops what came after "
            f"{source.update}, --run-name or --output-dir goes on in a new folder"
        )
    return later


def changes(config: TrainConfig, before: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that are not those of the checkpoint: field -> (then, now)."""
    now = {name: _plain(getattr(config, name)) for name in before if hasattr(config, name)}
    return {name: (before[name], now[name]) for name in now if before[name] != now[name]}


def check_network(changed: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuses to carry params over into another network.

    Raises:
        UserError: the network, what it reads or what it plays is another one.
    """
    for name in ("env", "observation", "architecture", "hidden_dim", "num_layers", "activation"):
        if name in changed:
            then, now = changed[name]
            raise UserError(
                f"{name} was {then} in the checkpoint and is {now} now: the network's params "
                f"don't fit, so nothing would carry over; leave {name} as it was, or start afresh"
            )


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _source(run: Path, checkpoint: Checkpoint | None) -> Source:
    if checkpoint is None:
        return Source(run, None, {CONFIG: with_num_minibatches(read_config(run / CONFIG_FILE))})
    try:
        facts = read_facts(checkpoint.path)
    except DamagedError as error:
        raise UserError(f"{error}; {_way_out(checkpoint)}") from None
    return Source(_run_of(checkpoint), checkpoint, facts)


def _run_of(checkpoint: Checkpoint) -> Path | None:
    folder = checkpoint.path.parent
    return folder.parent if folder.name == FOLDER else None


def _checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint that a path means: itself, the newest of a run, or one by its old name.

    None where the path is a run that has none yet.
    """
    if path.is_dir():
        if path.parent.name == FOLDER and path.name.isdecimal():
            return Checkpoint(path, int(path.name))
        if (path / "facts.json").exists():  # one that was copied to another place
            return Checkpoint(path, read_facts(path)["update"])
        return _newest(path.parent if path.name == FOLDER else path, path)
    if path.is_file():
        raise UserError(
            f"--resume {path}: is neither a run's folder, nor a checkpoint, nor exported params "
            "(.npz); pickles are not read, because they can run code"
        )
    if match := _ORIGINAL.fullmatch(path.name):
        run = path.parent.parent if path.parent.name == FOLDER else path.parent
        if match["update"] is None:
            return _newest(run, path)
        update = int(match["update"])
        if (run / FOLDER / str(update)).is_dir():
            return Checkpoint(run / FOLDER / str(update), update)
        raise UserError(f"--resume {path}: {_none_there(run, f'no checkpoint {update}')}")
    raise UserError(f"--resume {path}: there is no such file or folder")


def _newest(run: Path, named: Path) -> Checkpoint | None:
    checkpoints = checkpoints_of(run)
    begun = run == named and (run / CONFIG_FILE).exists() and newest_params(run) is None
    if not checkpoints and begun:
        return None
    if not checkpoints:
        raise UserError(f"--resume {named}: {_none_there(run, 'no checkpoint')}")
    return checkpoints[-1]


def _none_there(run: Path, what: str) -> str:
    there = [str(checkpoint.update) for checkpoint in checkpoints_of(run)]
    hint = f"there are {', '.join(there)}" if there else ""
    if not there and (run / "final_params.npz").exists():
        hint = f"its params can be started from: --resume {run / 'final_params.npz'}"
    return f"{run} has {what}" + (f"; {hint}" if hint else "")


def _way_out(damaged: Checkpoint) -> str:
    run = _run_of(damaged)
    for checkpoint in reversed(checkpoints_of(run) if run else []):
        if checkpoint.update < damaged.update and check_checkpoint(checkpoint.path) is None:
            return f"the one before it is whole: --resume {checkpoint.path} --rewind"
    return "there is no whole checkpoint before it"
