"""Checkpoints and files of params in a run's folder."""

from pathlib import Path

from hackmatrix.core.errors import UserError
from hackmatrix.learning.run.checkpoint_params import params_of
from hackmatrix.research.exchange.formats import FORMATS
from hackmatrix.runs.checkpoints import FACTS, FOLDER, check_checkpoint, checkpoints_of
from hackmatrix.runs.folder import CONFIG, TRIALS
from hackmatrix.runs.other_names import checkpoint_of_name, params_of_name
from hackmatrix.runs.params import Exported, agent_folders, newest_params


def runs_at(path: Path) -> list[Path]:
    """The runs in a folder of runs, or of a search, that hold anything; else the path itself."""
    folder = path / TRIALS if (path / TRIALS).is_dir() else path
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [each for each in inside if (each / CONFIG).is_file() and _of_run(each)] or [path]


def params_files_of(path: Path) -> list[Path]:
    """The checkpoints and files of params that a path means: itself, or all of a run.

    Names of other trainers are understood (`runs/other_names.py`).

    Raises:
        UserError: there is nothing.
    """
    if path.is_file() or (path / FACTS).is_file():
        return [path]
    if path.is_dir():
        if found := _of_run(path):
            return found
        raise UserError(f"{path}: holds neither checkpoints nor files of params")
    if (named := checkpoint_of_name(path)) is not None:
        return [named.path]
    if (params := params_of_name(path)).is_file():
        return [params]
    raise UserError(f"{path}: there is no such file or folder")


def _of_run(path: Path) -> list[Path]:
    run = path.parent if path.name == FOLDER else path
    found = [checkpoint.path for checkpoint in checkpoints_of(run)]
    for folder in agent_folders(run) or [run]:
        found += sorted(p for p in folder.iterdir() if p.suffix in FORMATS and p.is_file())
    return found


def params_at(path: Path) -> list[Exported]:
    """The params of a checkpoint, of each of its agents, or of a file.

    Raises:
        UserError: it can't be read, or is damaged.
    """
    if path.is_dir():
        checkpoint = check_checkpoint(path)
        return params_of(checkpoint, checkpoint.read_arrays())
    return [FORMATS[path.suffix].read(path)] if path.suffix in FORMATS else [_refuse(path)]


def read_params_of(path: Path, agent: int) -> Exported:
    """The params of one agent, of many from 0 on; of a run the newest ones.

    Raises:
        UserError: they can't be read, or there is no such agent.
    """
    folders = agent_folders(path)
    if folders:
        _check_agent(path, agent, len(folders))
        path, agent = folders[agent], 0
    newest = newest_params(path) if path.is_dir() else None
    path = newest or params_files_of(path)[-1]
    agents = params_at(path)
    _check_agent(path, agent, len(agents))
    return agents[agent]


def _check_agent(path: Path, agent: int, count: int) -> None:
    if agent >= count:
        raise UserError(f"--agent {agent}: {path} has {count}, numbered from 0 on")


def _refuse(path: Path) -> Exported:
    raise UserError(f"{path}: is read if it ends in {', '.join(FORMATS)}, or is a checkpoint")
