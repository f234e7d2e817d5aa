"""Runs that take a second or two, on a tiny environment, and what they leave."""

import io
from pathlib import Path
from typing import Any

import jax
import numpy as np
import probe_environments as probes

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.loop import MakeEvaluate, RunOutcome, train
from hackmatrix.learning.run.start import find_start
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint
from hackmatrix.runs.metrics_file import read_metrics
from hackmatrix.runs.params import agent_folders

MINE = TrainOptions(run_name="mine")


def config_in(folder: Path, **changes: Any) -> TrainConfig:
    settings = {
        "num_envs": 8,
        "num_steps": 8,
        "total_timesteps": 7 * 64,
        "hidden_dim": 8,
        "num_layers": 1,
        "log_interval": 3,
        "checkpoint_dir": folder,
        "tensorboard": False,
        "wandb": False,
    }
    return TrainConfig.of(**(settings | changes))


def run_of(
    folder: Path,
    options: TrainOptions = MINE,
    *,
    output: io.StringIO | None = None,
    env: probes.Probe | None = None,
    make_evaluate: MakeEvaluate | None = None,
    **changes: Any,
) -> RunOutcome:
    """Trains as the command would, from the beginning or from what the options resume."""
    start = find_start(options, folder)
    config = config_in(folder, **changes)
    if start.settings is not None:
        config, _ = resolve({"checkpoint_dir": folder} | changes, None, start.settings)
    with Console(output or io.StringIO()) as console:
        return train(
            config,
            options,
            console,
            start=start,
            env=env or probes.Grid(),
            make_evaluate=make_evaluate,
        )


def rows_of(run: Path) -> list[dict[str, Any]]:
    return list(read_metrics(run))


def updates_of(run: Path) -> list[int]:
    return [checkpoint.update for checkpoint in checkpoints_of(run)]


def without_speed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what depends on how busy the machine is."""
    speed, alarm = "train/steps_per_second", "throughput_falling"
    kept = [{name: value for name, value in row.items() if name != speed} for row in rows]
    return [
        row | {"alarms": [each for each in row.get("alarms", []) if each != alarm]} for row in kept
    ]


def assert_same_run(one: Path, other: Path, update: int) -> None:
    """The checkpoints of `update`, the metrics and the exported params, bit for bit."""
    (held, _), (expected, _) = (
        load_checkpoint(run / "checkpoints" / str(update)) for run in (one, other)
    )
    assert held.keys() == expected.keys()
    for name in held:
        assert held[name].tobytes() == expected[name].tobytes(), name
    assert without_speed(rows_of(one)) == without_speed(rows_of(other))
    agents = zip(agent_folders(one) or [one], agent_folders(other) or [other], strict=True)
    for mine, theirs in agents:
        params = load_policy(mine).params, load_policy(theirs).params
        jax.tree.map(np.testing.assert_array_equal, *params)
