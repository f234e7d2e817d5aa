"""Speed of the environments for clients, and of trainings with them on this machine.

The vector environment is measured as NumPy sees it: actions go in and observations come out as
NumPy arrays. Trainings are whole processes from start to end, one after another.
"""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

import hackmatrix.integrations.gymnasium
from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.research.bench.options import NUM_ENVS, Options
from hackmatrix.runs.metrics_file import read_metrics

_SB3 = "sb3 train --no-wandb --eval-freq 0 --save-freq 1000000000 --timesteps {timesteps}"
# What is trained, and its command line.
TRAININGS = {
    "SB3, engine in process": f"{_SB3} --backend python",
    "SB3, game process": f"{_SB3} --backend process",
    "SB3, JAX vector environment": f"{_SB3} --backend jax --num-envs 64",
    "SB3, preset tactical": f"{_SB3} --preset tactical",
    "JAX trainer": "train --no-wandb --total-timesteps {timesteps} --checkpoint-dir jax",
}


@dataclass(frozen=True)
class ClientsOptions(Options):
    """The options of the command."""

    num_envs: int = option(NUM_ENVS, "games of the vector environment", at_least=1)
    num_steps: int = option(40, "steps of each game in a repeat", at_least=1)
    repeats: int = option(5, "timed repeats", at_least=1)
    observation: Literal["compact", "classic", "full", "tactical", "planes", "dict"] = option(
        "compact", "layout of the observations"
    )
    train: int = option(0, "measure trainings of this many steps instead", at_least=0)


class VectorBench(NamedTuple):
    """Actions a second in all games, one number a repeat."""

    options: ClientsOptions
    steps: list[float]  # in `step` alone
    loop: list[float]  # with the choice of random valid actions

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "steps_per_second": statistics.median(self.steps),
            "loop_steps_per_second": statistics.median(self.loop),
            "repeats": self.steps,
            "num_envs": self.options.num_envs,
            "observation": self.options.observation,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        return (
            f"{statistics.median(self.steps):,.0f} steps/s seen from NumPy (median of "
            f"{len(self.steps)}; {min(self.steps):,.0f} to {max(self.steps):,.0f}), "
            f"{statistics.median(self.loop):,.0f} with the choice of actions: "
            f"{self.options.num_envs:,} games, {self.options.observation} observations"
        )


class Training(NamedTuple):
    """One training's figures."""

    name: str
    seconds: float
    timesteps: int
    stages: float  # cleared in all episodes that ended


class Trainings(NamedTuple):
    """Trainings of the same length."""

    all: list[Training]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "trainings": [each._asdict() for each in self.all],
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as a table of Markdown."""
        rows = [
            f"| {each.name} | {each.timesteps / each.seconds:,.0f} | "
            f"{60 * each.stages / each.seconds:,.1f} |"
            for each in self.all
        ]
        return "\n".join(
            ["| training | steps/s | stages cleared a minute |", "|---|---|---|", *rows]
        )


def measure(options: ClientsOptions) -> VectorBench | Trainings:
    """Measures the vector environment, or trainings."""
    if options.train:
        return Trainings([training(name, options.train) for name in TRAININGS])
    hackmatrix.integrations.gymnasium.register()
    envs = gymnasium.make_vec(
        ENVIRONMENT_ID,
        num_envs=options.num_envs,
        observation=options.observation,
    )
    rng = np.random.default_rng(0)
    _, infos = envs.reset(seed=0)
    steps, loop = [], []
    for repeat in range(options.repeats + 1):
        begin, inside = time.perf_counter(), 0.0
        for _ in range(options.num_steps):
            masks = infos["action_mask"]
            actions = (masks * rng.random(masks.shape, np.float32)).argmax(1)
            before = time.perf_counter()
            *_, infos = envs.step(actions)
            inside += time.perf_counter() - before
        if repeat:  # the first one compiles
            done = options.num_envs * options.num_steps
            steps.append(done / inside)
            loop.append(done / (time.perf_counter() - begin))
    return VectorBench(options, steps, loop)


def training(name: str, timesteps: int) -> Training:
    """Runs one training in a folder that is thrown away.

    Raises:
        UserError: it failed.
    """
    words = TRAININGS[name].format(timesteps=timesteps).split()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "hackmatrix", *words]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        if result.returncode:
            raise UserError(f"{' '.join(words)}: {result.stderr.strip()[-300:]}")
        return Training(name, seconds, timesteps, stages_cleared(Path(folder)))


def stages_cleared(folder: Path) -> float:
    """The stages cleared in a training, by its history, or by the rows of a run."""
    history = folder / "logs" / "training_history.db"
    if history.exists():
        database = sqlite3.connect(history)
        (total,) = database.execute("SELECT SUM(highest_stage - 1) FROM episodes").fetchone()
        database.close()
        return float(total or 0)
    (run,) = (folder / "jax").iterdir()
    return sum(
        (row["stats/mean_stage"] - 1) * row["train/num_episodes"]
        for row in read_metrics(run)
        if row.get("stats/mean_stage") is not None
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "clients",
        measure,
        ClientsOptions,
        argv,
        purpose="Measures the vector environment of Gymnasium, and trainings with each of them.",
        example="--train 500000\n      trains with each of them, which takes hours",
    )


if __name__ == "__main__":
    sys.exit(main())
