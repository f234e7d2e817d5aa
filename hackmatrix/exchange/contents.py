"""What lies in a run's folder: checkpoints and files of params, and the params in a checkpoint."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hackmatrix.errors import UserError
from hackmatrix.exchange.formats import FORMATS
from hackmatrix.runs.checkpoints import (
    FACTS,
    FOLDER,
    CheckedCheckpoint,
    check_checkpoint,
    checkpoints_of,
)
from hackmatrix.runs.folder import CONFIG, TRIALS
from hackmatrix.runs.params import Exported, agent_folders, exported, flat, newest_params
from hackmatrix.training.sources import ORIGINAL

_PARAMS, _SCALE = "params.", "feature_scale."  # before the names of a checkpoint's arrays


def runs_at(path: Path) -> list[Path]:
    """The runs in a folder of runs, or of a search, that hold anything; else the path itself."""
    folder = path / TRIALS if (path / TRIALS).is_dir() else path
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [each for each in inside if (each / CONFIG).is_file() and _of_run(each)] or [path]


def found_at(path: Path) -> list[Path]:
    """The checkpoints and files of params that a path means: itself, or all of a run.

    `checkpoint_40.pkl`, if there is no such file, is the checkpoint 40 of the run in whose folder
    it would lie.

    Raises:
        UserError: there is nothing.
    """
    if path.is_file() or (path / FACTS).is_file():
        return [path]
    if path.is_dir():
        if found := _of_run(path):
            return found
        raise UserError(f"{path}: holds neither checkpoints nor files of params")
    match = ORIGINAL.fullmatch(path.name)
    run = path.parent.parent if path.parent.name == FOLDER else path.parent
    if match and match["update"] and (named := run / FOLDER / match["update"]).is_dir():
        return [named]
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
    return [FORMATS[path.suffix].read(path)] if path.suffix in FORMATS else [_refused(path)]


def params_chosen(path: Path, agent: int) -> Exported:
    """The params of one agent, of many from 0 on; of a run the newest ones.

    Raises:
        UserError: they can't be read, or there is no such agent.
    """
    folders = agent_folders(path)
    if folders:
        _check_agent(path, agent, len(folders))
        path, agent = folders[agent], 0
    newest = newest_params(path) if path.is_dir() else None
    path = newest or found_at(path)[-1]
    agents = params_at(path)
    _check_agent(path, agent, len(agents))
    return agents[agent]


def params_of(checkpoint: CheckedCheckpoint, arrays: Mapping[str, np.ndarray]) -> list[Exported]:
    """The params of each agent of a checkpoint, as its run would export them.

    Args:
        checkpoint: its facts and path.
        arrays: its arrays, see `hackmatrix.training.snapshots`.
    """
    facts = checkpoint.facts
    found = []
    for k in range(facts.num_agents):
        of_agent = {
            name: array if facts.num_agents == 1 else array[k]
            for name, array in arrays.items()
            if name.startswith((_PARAMS, _SCALE))
        }
        params = {n.removeprefix(_PARAMS): a for n, a in of_agent.items() if n.startswith(_PARAMS)}
        if f"{_SCALE}mean" in of_agent:
            params = _folded(checkpoint.path, params, of_agent)
        about = {"format": 1, **facts.of_agent(k).as_json()}
        found.append(exported(checkpoint.path, params, about))
    return found


def _folded(
    path: Path, params: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The params with the feature normalisation in their first layer."""
    import jax.numpy as jnp

    from hackmatrix.agents.normalisation import FeatureScale

    scale = FeatureScale(
        **{
            name.removeprefix(_SCALE): jnp.asarray(array)
            for name, array in arrays.items()
            if name.startswith(_SCALE)
        }
    )
    return dict(flat(scale.folded(exported(path, params, {}).params)))


def _check_agent(path: Path, agent: int, count: int) -> None:
    if agent >= count:
        raise UserError(f"--agent {agent}: {path} has {count}, numbered from 0 on")


def _refused(path: Path) -> Exported:
    raise UserError(f"{path}: is read if it ends in {', '.join(FORMATS)}, or is a checkpoint")
