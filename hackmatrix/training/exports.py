"""Params for sharing: the network alone, in the run's folder; for many agents `seed_{s}/` in it."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hackmatrix.errors import UserError
from hackmatrix.learner.seeds import are_finite, split
from hackmatrix.reporting.rows import AGENTS
from hackmatrix.runs.checkpoints import load_checkpoint
from hackmatrix.runs.params import (
    agent_folders,
    newest_params,
    remove_params,
    remove_params_after,
    save_params,
    update_of_params,
)
from hackmatrix.runs.saver import EVALUATION, Snapshot, best_checkpoint
from hackmatrix.training import sources
from hackmatrix.training.snapshots import params_of

BEST, FINAL = "best_params", "final_params"


def export(run: Path, snapshot: Snapshot, *, final: bool) -> list[Path]:
    """Writes the params of a snapshot for each agent; those that are not finite are left out.

    Returns:
        The files named by the update, and the facts beside them.
    """
    names = [f"params_{snapshot.update}"]
    if snapshot.facts[EVALUATION] is not None:
        names.append(BEST)
    if final:
        names.append(FINAL)
    written = []
    for name in reversed(names):
        written = _write(run, name, snapshot.update, snapshot.params, snapshot.facts)
    return written


def is_exported(run: Path, update: int) -> bool:
    """Whether the run's final params are those of this update."""
    folders = agent_folders(run) or [run]
    return any(update_of_params(folder, FINAL) == update for folder in folders)


def newest(run: Path) -> Path | None:
    """The newest file of params; of many agents the run's folder, where they all are."""
    if agent_folders(run):
        return run
    return newest_params(run)


def cut(run: Path, update: int) -> None:
    """Removes params of later updates; best_params become those of the best checkpoint left."""
    for folder in (run, *agent_folders(run)):
        remove_params_after(folder, update)
    best, folders = best_checkpoint(run), agent_folders(run) or [run]
    if best is None:
        for folder in folders:
            remove_params(folder, BEST)
    elif any(update_of_params(folder, BEST) != best.update for folder in folders):
        with contextlib.suppress(UserError):  # a damaged one is told when it is used
            arrays, facts = load_checkpoint(best.path)
            agents = map(params_of, split(arrays, facts[sources.CONFIG].get("num_seeds", 1)))
            finite = [params if are_finite(params) else None for params in agents]
            _write(run, BEST, best.update, finite, facts)


def _write(
    run: Path,
    name: str,
    update: int,
    agents: Sequence[Mapping[str, Any] | None],
    facts: Mapping[str, Any],
) -> list[Path]:
    written = []
    evaluation = facts[EVALUATION]
    for k, params in enumerate(agents):
        if params is None:
            continue
        config, folder = facts[sources.CONFIG], run
        own = evaluation
        if len(agents) > 1:
            config = config | {"seed": config["seed"] + k, "num_seeds": 1}
            folder = run / f"seed_{config['seed']}"
            folder.mkdir(exist_ok=True)
            own = evaluation and evaluation[AGENTS][k]
        about = {
            "environment": facts[sources.ENVIRONMENT],
            "observation": config["observation"],
            "version": facts["version"],
            "update": update,
            "timesteps": facts[sources.TIMESTEPS],
            EVALUATION: own,
            "config": config,
        }
        path = folder / f"{name}.npz"
        save_params(path, params, about)
        written += [path, path.with_suffix(".json")]
    return written
