"""A table of the checkpoints and files of params of runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.research.figures import abbreviate
from hackmatrix.runs.checkpoints import best_checkpoint, read_facts
from hackmatrix.runs.facts import SCORE, score_in


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
