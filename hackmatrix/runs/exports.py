"""Exported params in a run's folder: the network only; many agents have `seed_{s}/` each.

`params_{update}` belongs to the checkpoint of that update, is written after it and removed with it.
`best_params` and `final_params` are copies.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hackmatrix.runs.checkpoints import best_checkpoint
from hackmatrix.runs.facts import Facts
from hackmatrix.runs.params import (
    FINAL,
    agent_folders,
    newest_params,
    numbered_params,
    remove_params,
    save_params,
    update_of_params,
)
from hackmatrix.storage.files import write_atomically

BEST = "best_params"


def export_params(
    run: Path, facts: Facts, agents: Sequence[Mapping[str, Any] | None]
) -> list[Path]:
    """Writes `params_{update}` of each agent.

    Args:
        run: the run's folder.
        facts: the facts of the checkpoint.
        agents: params of each agent; None leaves an agent out.

    Returns:
        The files written.
    """
    written = []
    for k, params in enumerate(agents):
        if params is None:
            continue
        about = facts.of_agent(k)
        folder = run / f"seed_{about.config['seed']}" if len(agents) > 1 else run
        folder.mkdir(exist_ok=True)
        path = folder / f"params_{facts.update}.npz"
        save_params(path, params, about.as_json())
        written += [path, path.with_suffix(".json")]
    return written


def is_exported(run: Path, update: int) -> bool:
    """Whether any agent has exported params of this update."""
    return any(update in numbered_params(folder) for folder in _folders(run))


def export_final(run: Path, update: int) -> None:
    """Copies the params of this update to `final_params`."""
    for folder in _folders(run):
        _copy(folder, update, FINAL)


def export_best(run: Path) -> None:
    """Copies the params of the best checkpoint to `best_params`; removes outdated ones."""
    best = best_checkpoint(run)
    for folder in _folders(run):
        held = update_of_params(folder, BEST)
        if best is None or (held is not None and held > best.update):
            remove_params(folder, BEST)
        if best is not None and held != best.update:
            _copy(folder, best.update, BEST)


def remove_exported(run: Path, update: int) -> None:
    """Removes the exported params of an update."""
    for folder in _folders(run):
        remove_params(folder, f"params_{update}")


def remove_exported_after(run: Path, update: int) -> None:
    """Removes the exported params of later updates, and `final_params`."""
    for folder in _folders(run):
        for later in (number for number in numbered_params(folder) if number > update):
            remove_params(folder, f"params_{later}")
        remove_params(folder, FINAL)


def newest_exported(run: Path) -> Path | None:
    """The newest file of exported params; for many agents the run's folder, which holds theirs."""
    return run if agent_folders(run) else newest_params(run)


def _folders(run: Path) -> list[Path]:
    """The folders that hold params: one for each agent."""
    return agent_folders(run) or [run]


def _copy(folder: Path, update: int, name: str) -> None:
    """Copies the params of an update, if they exist: they are missing for agents left out."""
    source = folder / f"params_{update}.npz"
    if update_of_params(folder, source.stem) == update:
        for suffix in (".json", ".npz"):
            write_atomically(folder / f"{name}{suffix}", source.with_suffix(suffix).read_bytes())
