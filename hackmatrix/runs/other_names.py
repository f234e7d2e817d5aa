"""The names that other trainers' documents have for what a run keeps; one place understands them.

`RUN/checkpoint_40.pkl` and `.pt` are checkpoint 40 of the run in that folder, `checkpoint.pkl` is
its newest one. In a folder of runs, such a name or `final_params.npz` is of the newest run. A file
that is there is always meant itself.
"""

import os
import re
from pathlib import Path

from hackmatrix.core.errors import UserError
from hackmatrix.runs.checkpoints import FOLDER, Checkpoint, checkpoints_of
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.names import is_checkpoint_name, update_of_name
from hackmatrix.runs.params import agent_folders, newest_params, numbered_params

_RUNS = Path("checkpoints")  # the folder of runs by default
_PARAMS = re.compile(r"(?:params_(?P<update>\d+)|final_params)\.npz")


def run_of_name(path: Path) -> Path:
    """The folder of the run whose checkpoint, or params, a path of another trainer names.

    Raises:
        UserError: there is no run.
    """
    folder = path.parent
    for run in (folder, *([folder.parent] if folder.name == FOLDER else [])):
        if (run / CONFIG).is_file():
            return run
    if (newest := _newest_in(folder)) is not None:
        return newest
    missing = f"{path}: there is no such file, and {folder} holds no run with params"
    for other in (folder.parent, _RUNS):
        if (newest := _newest_in(other)) is not None:
            raise UserError(f"{missing}; {other} does: {newest / path.name}")
    raise UserError(f"{missing}: `hackmatrix train` makes one")


def checkpoint_of_name(path: Path) -> Checkpoint | None:
    """The checkpoint that a path of another trainer names; None if the path is no such name.

    Raises:
        UserError: there is no such run, or it has no such checkpoint.
    """
    if not is_checkpoint_name(path.name):
        return None
    run, update = run_of_name(path), update_of_name(path.name)
    checkpoints = {each.update: each for each in checkpoints_of(run)}
    which = "" if update is None else f" {update}"
    update = max(checkpoints, default=None) if update is None else update
    if update not in checkpoints:
        raise UserError(f"{path}: {run} has no checkpoint{which}{_instead(run)}")
    return checkpoints[update]


def params_of_name(path: Path) -> Path:
    """The file of params that a path means: itself if it exists, or is no name of ours or theirs.

    Raises:
        UserError: it names params or a checkpoint that a run does not have.
    """
    if path.parent.name == FOLDER and path.name.isdecimal():
        beside = path.parent.parent / f"params_{path.name}.npz"
        return beside if beside.is_file() else path
    params_name = _PARAMS.fullmatch(path.name)
    is_name = is_checkpoint_name(path.name) or (params_name and path.parent.is_dir())
    if os.path.exists(path) or not is_name:  # the name may be too long for a file
        return path
    run = run_of_name(path)
    if folders := agent_folders(run):
        raise UserError(f"{path}: {run} has {len(folders)} agents: name {folders[0] / path.name}")
    numbered, update = numbered_params(run), update_of_name(path.name)
    if params_name is not None and params_name["update"] is not None:
        update = int(params_name["update"])
    params = newest_params(run) if update is None else numbered.get(update)
    if params is None:
        which = "" if update is None else f" of update {update}"
        there = f"; there are {', '.join(map(str, sorted(numbered)))}" if numbered else ""
        raise UserError(f"{path}: {run} has no params{which}{there}")
    return params


def _newest_in(folder: Path) -> Path | None:
    """The run in a folder whose params are newest; None if there is none."""
    runs = [each for each in folder.iterdir() if _has_params(each)] if folder.is_dir() else []
    return max(runs, key=_time_written, default=None)


def _instead(run: Path) -> str:
    updates = [str(each.update) for each in checkpoints_of(run)]
    if updates:
        return f"; there are {', '.join(updates)}"
    params = newest_params(run)
    return "" if params is None else f"; a new run can start from its params: --resume {params}"


def _has_params(run: Path) -> bool:
    is_run = (run / CONFIG).is_file()
    return is_run and any(newest_params(folder) for folder in (agent_folders(run) or [run]))


def _time_written(run: Path) -> float:
    """The time when a run's params were written."""
    newest = [newest_params(folder) for folder in (agent_folders(run) or [run])]
    return max(path.stat().st_mtime for path in newest if path is not None)
