"""Folders of runs with rows of metrics, as a training leaves them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hackmatrix.agents import shipped

STEPS_OF_UPDATE = 1000


def row_of(update: int, **values: Any) -> dict[str, Any]:
    """A row of metrics; `mean_episode_return=3` is of `train/`."""
    named = {name if "/" in name else f"train/{name}": value for name, value in values.items()}
    alarms = named.pop("train/alarms", None)
    row = {"update": update, "timesteps": update * STEPS_OF_UPDATE, **named}
    return row | ({"alarms": alarms} if alarms else {})


def lines_of(rows: Iterable[dict[str, Any]]) -> bytes:
    """Rows as lines of a file."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write_run(
    path: Path,
    rows: Iterable[dict[str, Any]] = (),
    *,
    updates: int = 100,
    env: str | None = None,
    **settings: Any,
) -> Path:
    """Makes the folder of a run that is to make so many updates, with some rows."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "metrics.jsonl").write_bytes(lines_of(rows))
    training = {"seed": 0, "total_timesteps": updates * STEPS_OF_UPDATE, **settings}
    config = {"training": training} | ({} if env is None else {"environment": {"name": env}})
    (path / "config.yaml").write_text(yaml.safe_dump(config))
    return path


def append(path: Path, *rows: dict[str, Any]) -> None:
    """Adds rows to a run, as its process does."""
    with (path / "metrics.jsonl").open("ab") as file:
        file.write(lines_of(rows))


def save_agent(
    path: Path, update: int, name: str | None = None, environment: str = "HackMatrix-v1"
) -> None:
    """Leaves params in a run's folder; they only look so."""
    name = name or f"params_{update}"
    (path / f"{name}.npz").write_bytes(b"")
    facts = {"format": 1, "update": update, "environment": environment, "config": {}}
    (path / f"{name}.json").write_text(json.dumps(facts))


def save_player(path: Path, update: int, noise: float) -> None:
    """Leaves params that play: those of the packaged agent, with a share of noise."""
    rng = np.random.default_rng(update)
    with np.load(shipped.PARAMS) as params:
        mixed = {
            name: (1 - noise) * array + noise * array.std() * rng.normal(size=array.shape)
            for name, array in params.items()
        }
    np.savez(path / f"params_{update}.npz", **{k: v.astype(np.float32) for k, v in mixed.items()})
    facts = json.loads(shipped.PARAMS.with_suffix(".json").read_text())
    (path / f"params_{update}.json").write_text(json.dumps(facts | {"update": update}))
