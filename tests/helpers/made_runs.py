"""Folders of runs whose metrics are made up."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config

BATCH = 256 * 128


def make_run(
    path: Path,
    value: Callable[[float], float],
    *,
    metric: str = "train/mean_episode_return",
    updates: int = 10,
    speed: float = 1000.0,
    seeds: Sequence[int] = (0,),
    **settings: Any,
) -> Path:
    """A run with a row for each update; `value` is of the steps, plus the seed of each agent."""
    config = TrainConfig.of(seed=seeds[0], num_seeds=len(seeds), **settings)
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(dump_config(config))
    lines = []
    for update in range(1, updates + 1):
        steps = update * config.learning.batch_size
        row = {"update": update, "timesteps": steps, "train/steps_per_second": speed}
        row[metric] = value(steps) + seeds[0]
        if len(seeds) > 1:
            row["agents"] = [{"seed": s, metric: value(steps) + s} for s in seeds]
        lines.append(json.dumps(row))
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return path
