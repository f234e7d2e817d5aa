"""Exported params in a run's folder: the network only; many agents have `seed_{s}/` each.

`params_{update}` belongs to the checkpoint of that update, is written after it and removed with it.
`best_params` and `final_params` are copies.
"""

import errno
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from hackmatrix.core.files import write_pair
from hackmatrix.runs.checkpoints import Facts, best_checkpoint, score_in, score_of
from hackmatrix.runs.params import (
    FINAL,
    agent_folders,
    facts_of_params,
    newest_params,
    numbered_params,
    remove_params,
    save_params,
    update_of_params,
)

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
        folder = run
        if len(agents) > 1:
            folder = run / f"seed_{about.config['seed']}"
            folder.mkdir(exist_ok=True)  # never the run's: it may have been moved away
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


def export_best(run: Path) -> bool:
    """Copies the params of the best checkpoint to `best_params`.

    Better ones that are there stay: they have outlived their checkpoint.

    Returns:
        Whether `best_params` are the best ones now; False if those of the best checkpoint are
        missing.
    """
    best = best_checkpoint(run)
    score, held = None if best is None else score_of(best), score_of_best(run)
    if best is None or score is None or (held is not None and held > score):
        return True
    missing = [
        folder
        for folder in _folders(run)
        if update_of_params(folder, BEST) != best.update and not _copy(folder, best.update, BEST)
    ]
    return not missing


def copy_best(run: Path, update: int) -> None:
    """Copies the params of this update to `best_params`.

    Raises:
        OSError: they are missing, or can't be written.
    """
    missing = [folder for folder in _folders(run) if not _copy(folder, update, BEST)]
    if missing:
        raise FileNotFoundError(errno.ENOENT, f"params_{update} are missing")


def score_of_best(run: Path) -> float | None:
    """The score of `best_params`, of many agents the mean; None if it is not known of all."""
    held = [facts_of_params(folder, BEST) for folder in _folders(run)]
    scores = [score_in(facts.get("evaluation")) for facts in held]
    known = [score for score in scores if score is not None]
    are_of_one_update = len({facts.get("update") for facts in held}) == 1
    return fmean(known) if are_of_one_update and len(known) == len(scores) else None


def remove_export(run: Path, update: int) -> None:
    """Removes the exported params of an update."""
    for folder in _folders(run):
        remove_params(folder, f"params_{update}")


def later_exports(run: Path, update: int) -> list[str]:
    """The names of exported params of later updates, such as `params_60` and `final_params`."""
    names = {name: None for folder in _folders(run) for name in _names_after(folder, update)}
    return list(names)


def remove_later_exports(run: Path, update: int) -> None:
    """Removes the exported params of later updates, and `final_params`."""
    for folder in _folders(run):
        for name in (*_names_after(folder, update), FINAL):
            remove_params(folder, name)


def newest_export(run: Path) -> Path | None:
    """The newest file of exported params; for many agents the run's folder, which holds theirs."""
    return run if agent_folders(run) else newest_params(run)


def _folders(run: Path) -> list[Path]:
    """The folders that hold params: one for each agent."""
    return agent_folders(run) or [run]


def _copy(folder: Path, update: int, name: str) -> bool:
    """Copies the params of an update; returns False if there are none, as of an agent left out."""
    source = folder / f"params_{update}.npz"
    try:
        params, facts = source.read_bytes(), source.with_suffix(".json").read_bytes()
    except FileNotFoundError:
        return False
    write_pair(folder / f"{name}.npz", params, folder / f"{name}.json", facts)
    return True


def _names_after(folder: Path, update: int) -> list[str]:
    """The names of a folder's params that are, or may be, of later updates."""
    numbered = numbered_params(folder)
    held: dict[str, float] = {f"params_{number}": number for number in sorted(numbered)}
    for name in (BEST, FINAL):
        if (path := folder / f"{name}.npz").exists():
            known = update_of_params(folder, name)
            held[name] = _update_of_same(path, numbered) if known is None else known
    return [name for name, number in held.items() if number > update]


def _update_of_same(copy: Path, numbered: Mapping[int, Path]) -> float:
    """The first update whose params a copy without facts holds; infinity if there is none."""
    content = copy.read_bytes()
    return min((n for n, path in numbered.items() if path.read_bytes() == content), default=inf)
