"""Checkpoints and files of params in a run's folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.learning.run.checkpoint_params import params_of
from hackmatrix.research.exchange.formats import FORMATS
from hackmatrix.research.figures import abbreviate
from hackmatrix.runs.checkpoints import (
    FACTS,
    FOLDER,
    SCORE,
    best_checkpoint,
    check_checkpoint,
    checkpoints_of,
    read_facts,
    score_in,
)
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


# --- A table of the checkpoints and files of params of runs ---------------------------------------


class Listed(NamedTuple):
    """One row: what is known without reading arrays."""

    path: Path
    update: int | None
    timesteps: int | None
    score: float | None  # of the evaluation
    best: bool
    size: int  # bytes
    problem: str | None

    def as_dict(self) -> dict[str, Any]:
        """The row, for `--json`."""
        return {**self._asdict(), "path": str(self.path)}


def list_rows(paths: list[Path], run: Path) -> Iterator[Listed]:
    """The rows of some checkpoints and files of a run."""
    best = best_checkpoint(run) if run.is_dir() else None
    for path in paths:
        size = sum(p.stat().st_size for p in (path.rglob("*") if path.is_dir() else [path]))
        about, problem = _facts(path)
        yield Listed(
            path=path,
            update=_whole(about.get("update")),
            timesteps=_whole(about.get("timesteps")),
            score=score_in(about.get("evaluation")),
            best=best is not None and path == best.path,
            size=size,
            problem=problem,
        )


def _facts(path: Path) -> tuple[dict[str, Any], str | None]:
    """The facts in a checkpoint or beside a file, and what is wrong with them."""
    try:
        if path.is_dir():
            return read_facts(path).as_json(), None
        beside = path.with_suffix(".json")
        found = json.loads(beside.read_text()) if beside.is_file() else {}
        return (found, None) if isinstance(found, dict) else ({}, f"{beside.name} is no object")
    except (UserError, OSError, ValueError, RecursionError) as error:
        return {}, " ".join(str(error).split())


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def table(rows: list[Listed]) -> str:
    """The rows as text."""
    cells = [["update", "steps", SCORE, "size", ""]]
    for row in rows:
        score = "" if row.score is None else f"{row.score:.4g}"
        notes = ", the best" * row.best + (f", {row.problem}" if row.problem else "")
        cells.append(
            [
                "" if row.update is None else f"{row.update:,}",
                "" if row.timesteps is None else abbreviate(row.timesteps),
                score,
                f"{row.size / 1e6:.1f} MB",
                f"{row.path}{notes}",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(line.rstrip() for line in lines)
