"""What a run continues: a checkpoint found by its path, and what of it fits the configuration."""

import re
from collections.abc import Callable, Mapping
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
from hackmatrix.settings.config import Course, TrainConfig
from hackmatrix.settings.config_file import Settings, read_config, with_num_minibatches
from hackmatrix.settings.options import TrainOptions
from hackmatrix.storage.manifest import DamagedError, check_manifest

_ORIGINAL = re.compile(r"checkpoint(?:_(?P<update>\d+))?\.(pkl|pt)")

# Facts of a checkpoint.
CONFIG, ENVIRONMENT, TIMESTEPS = "config", "environment", "timesteps"


class Source(NamedTuple):
    """What is resumed, before its arrays are read."""

    run: Path | None  # the folder that it lies in, if it lies in a run's folder
    checkpoint: Checkpoint | None  # None: the run was ended before its first one
    facts: Facts  # of the checkpoint
    settings: Settings  # what the run was last asked for

    @property
    def update(self) -> int:
        """Updates made so far."""
        return 0 if self.checkpoint is None else self.checkpoint.update

    def course(self, config: TrainConfig) -> Course:
        """How updates and timesteps go together from here on."""
        timesteps = self.facts.get(TIMESTEPS, 0)
        return Course(config.batch_size, config.total_timesteps, self.update, timesteps)


def find_source(
    options: TrainOptions, checkpoint_dir: Path, fetch: Callable[[str, Path], Path] | None = None
) -> Source | Path | None:
    """What `--resume` or `--resume-run` name: a checkpoint, a file of params, or nothing.

    Args:
        options: of this call.
        checkpoint_dir: folder of runs.
        fetch: makes the folder of a run that is not here (id, folder) -> folder.

    Raises:
        UserError: there is no such thing, it can't be resumed, or it is damaged.
    """
    if options.resume_run is not None:
        run = checkpoint_dir / options.resume_run
        if not run.is_dir():
            if fetch is None:
                raise UserError(f"--resume-run {options.resume_run}: there is no run {run}")
            fetch(options.resume_run, run)
        return _source(run, _newest(run, run))
    if options.resume is None:
        return None
    path = Path(options.resume)
    if path.suffix == ".npz":
        if not path.is_file():
            raise UserError(f"--resume {path}: there is no such file")
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


def load_exported(path: Path, config: TrainConfig, environment: str) -> Exported:
    """Params to start from.

    Raises:
        UserError: they can't be read, belong to another environment or to a network with another
            activation, or read features as they are where they are to be normalised.
    """
    exported = load_params(path)
    check_environment(exported.about, environment, path)
    activation = exported.about.get(CONFIG, {}).get("activation", config.activation)
    if activation != config.activation:
        raise UserError(f"{path}: was trained with --activation {activation}")
    if config.normalize_observations:
        raise UserError(
            f"{path}: exported params read observations as they are; leave "
            "--normalize-observations off"
        )
    return exported


def check_environment(facts: Mapping[str, Any], environment: str, path: Path) -> None:
    """Refuses what was trained on another environment, or on another version of it.

    Raises:
        UserError: it was.
    """
    known = facts.get(ENVIRONMENT, environment)
    if known != environment:
        raise UserError(f"{path}: was trained on {known}, not on {environment}")


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
    settings = config.as_dict()
    now = {name: settings[name] for name in before if name in settings and name != "env"}
    return {name: (before[name], now[name]) for name in now if before[name] != now[name]}


def check_network(changed: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuses to carry params over into another network.

    Raises:
        UserError: the network, what it reads or what it plays is another one.
    """
    for name in ("observation", "architecture", "hidden_dim", "num_layers", "activation"):
        if name in changed:
            then, now = changed[name]
            raise UserError(
                f"{name} was {then} in the checkpoint and is {now} now: the network's params "
                f"don't fit, so nothing would carry over; leave {name} as it was, or start afresh"
            )
    if "num_seeds" in changed:
        then, now = changed["num_seeds"]
        raise UserError(
            f"the checkpoint holds {then} agents, --num-seeds asks for {now}: leave it as it was; "
            "a new run can start from the params of one of them (--resume FILE.npz)"
        )
    if "normalize_observations" in changed:
        then, now = (("off", "on")[value] for value in changed["normalize_observations"])
        raise UserError(
            f"--normalize-observations was {then} in the checkpoint and is {now} now: its network "
            "would read other numbers than it has learned to; leave it as it was"
        )


def _source(run: Path, checkpoint: Checkpoint | None) -> Source:
    if checkpoint is None:
        return Source(run, None, {}, _settings_of(run))
    try:
        check_manifest(checkpoint.path)
        facts = read_facts(checkpoint.path)
    except DamagedError as error:
        raise UserError(f"{error}; {_way_out(checkpoint)}") from None
    owner = _run_of(checkpoint)
    if owner is None or not (owner / CONFIG_FILE).exists():
        return Source(owner, checkpoint, facts, facts[CONFIG])
    return Source(owner, checkpoint, facts, facts[CONFIG] | _settings_of(owner))


def _settings_of(run: Path) -> Settings:
    return with_num_minibatches(read_config(run / CONFIG_FILE))


def _run_of(checkpoint: Checkpoint) -> Path | None:
    folder = checkpoint.path.parent
    return folder.parent if folder.name == FOLDER else None


def _checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint that a path means: itself, the newest of a run, or one by its old name.

    None where the path is a run that has none yet.
    """
    if path.is_dir():
        if (path / CONFIG_FILE).exists():
            return _newest(path, path)
        if path.parent.name == FOLDER and path.name.isdecimal():
            return Checkpoint(path, int(path.name))
        if (path / "facts.json").exists():  # one that was copied to another place
            check_manifest(path)
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
