"""A stand-in for a training process: each look at it finds one more row of metrics."""

import contextlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config, read_config, with_num_minibatches

RETURN = "train/mean_episode_return"
ROWS = 8

Value = Callable[[TrainConfig, float], float]  # of a run at a share of its steps


def peak(config: TrainConfig, share: float) -> float:
    """Highest for a learning rate of 0.001."""
    return share * (10 - abs(config.learning.lr - 0.001) * 1000)


def write_rows(config: TrainConfig, run: Path, value: Value, rows: int) -> None:
    """The first rows of a run; its speed falls with its epochs."""
    run.mkdir(parents=True, exist_ok=True)
    if not (run / "config.yaml").exists():
        (run / "config.yaml").write_text(dump_config(config))
    lines = []
    for row in range(1, rows + 1):
        steps = config.learning.total_timesteps * row // ROWS
        mean = value(config, row / ROWS)
        told: dict[str, Any] = {"update": row, "timesteps": steps, RETURN: mean}
        told["train/steps_per_second"] = 1000 / config.learning.update_epochs
        if config.run.num_seeds > 1:
            told["agents"] = [{"seed": s, RETURN: mean + s % 2 / 100} for s in config.run.seeds]
        if math.isinf(mean):
            told |= {RETURN: None, "alarms": ["not_finite"]}
            told.pop("agents", None)
        elif mean < -100:
            told["alarms"] = ["entropy_collapse", "entropy_low"]
        lines.append(json.dumps(told) + "\n")
    (run / "metrics.jsonl").write_text("".join(lines))
    if rows == ROWS:
        for folder in (
            [run / f"seed_{s}" for s in config.run.seeds] if config.run.num_seeds > 1 else [run]
        ):
            folder.mkdir(exist_ok=True)
            (folder / "final_params.npz").touch()


class Process:
    """A process under way; fails where the value is NaN."""

    returncode = 0

    def __init__(self, config: TrainConfig, run: Path, value: Value) -> None:
        self.looks = 0
        self._row = lambda rows: write_rows(config, run, value, rows)
        if value(config, 1.0) != value(config, 1.0):
            self.returncode = 1
            run.with_suffix(".log").write_text("it begins\nout of memory\n")

    def poll(self) -> int | None:
        if self.returncode or self.looks == ROWS:
            return self.returncode
        self.looks += 1
        self._row(self.looks)
        return None


def made_training(value: Value, made: list[TrainConfig]) -> Any:
    """In place of `training` of `hackmatrix.research.tuning`; `made` collects configurations."""

    @contextlib.contextmanager
    def training(config: TrainConfig, run: Path) -> Iterator[Process]:
        made.append(config)
        run.parent.mkdir(parents=True, exist_ok=True)
        yield Process(config, run, value)

    return training


def main(argv: list[str]) -> None:
    """In place of `hackmatrix train`, as a process: waits while the file `gate` is beside it.

    Where the file `kills` is beside it, with a number, so many with 2 epochs are killed.
    """
    given = dict(zip(argv[::2], argv[1::2], strict=True))
    run = Path(given.get("--output-dir") or given["--resume"])
    settings = Path(given.get("--config") or run / "config.yaml")
    config = TrainConfig.of(**with_num_minibatches(read_config(settings)))
    (run.parent / f"{run.name}.pid").write_text(str(os.getpid()))
    write_rows(config, run, peak, 1)
    kills = run.parent / "kills"
    if config.learning.update_epochs == 2 and kills.exists() and (left := int(kills.read_text())):
        kills.write_text(str(left - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    while (run.parent / "gate").exists():
        time.sleep(0.05)
    write_rows(config, run, peak, ROWS)


if __name__ == "__main__":
    main(sys.argv[1:])
