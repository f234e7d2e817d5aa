"""What trackers cost a run: the same one with and without them, in turn."""

import dataclasses
import importlib.util
import io
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from hackmatrix.bench.options import TrackersOptions
from hackmatrix.runs import machine
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.config_file import read_config
from hackmatrix.training.console import Console
from hackmatrix.training.loop import train
from hackmatrix.training.options import TrainOptions as RunOptions
from hackmatrix.training.settings import resolve

_DEFAULT = TrackersOptions()
_WAYS = {  # whether TensorBoard and W&B are told
    "none": (False, False),
    "TensorBoard": (True, False),
    "W&B, offline": (False, True),
}


class Run(NamedTuple):
    """A run, from the first update to the last."""

    seconds: float
    cpu: float  # seconds of all cores, of this process and of those that it started


class Costs(NamedTuple):
    """What was measured, by tracker."""

    config: TrainConfig
    rows: int  # told in a run
    runs: dict[str, list[Run]]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        plain = self.runs["none"]
        figures = {}
        for name, runs in self.runs.items():
            ratios = [run.seconds / other.seconds for run, other in zip(runs, plain, strict=True)]
            cpu = [run.cpu - other.cpu for run, other in zip(runs, plain, strict=True)]
            figures[name] = {
                "seconds": statistics.median(run.seconds for run in runs),
                "slower": statistics.median(ratios) - 1,
                "slower_min": min(ratios) - 1,
                "slower_max": max(ratios) - 1,
                "more_cpu_seconds": statistics.median(cpu),
            }
        return {
            "env": self.config.env,
            "timesteps": self.config.num_updates * self.config.batch_size,
            "rows": self.rows,
            "trackers": figures,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """For people."""
        it = self.as_dict()
        lines = [
            f"{it['env']}, {it['timesteps']:,} steps, {it['rows']} rows of metrics; medians of "
            f"{len(self.runs['none'])} runs, each beside one without trackers:",
            f"{'':<16}{'seconds':>9}{'slower':>9}{'(from':>9}{'to)':>9}{'more CPU s':>12}",
        ]
        for name, figures in it["trackers"].items():
            numbers = [figures[key] for key in ("slower", "slower_min", "slower_max")]
            lines.append(
                f"{name:<16}{figures['seconds']:>9.2f}"
                + "".join(f"{number:>+9.2%}" for number in numbers)
                + f"{figures['more_cpu_seconds']:>+12.2f}"
            )
        return "\n".join([*lines, machine.line(it, it["versions"])])


def measure(
    config: Path | None = _DEFAULT.config,
    timesteps: int = _DEFAULT.timesteps,
    repeats: int = _DEFAULT.repeats,
) -> Costs:
    """Times real runs, in turn; nothing is sent anywhere.

    Args:
        config: settings of the runs; None: the defaults of `hackmatrix train`.
        timesteps: length of a run.
        repeats: runs of each kind, after one that compiles.
    """
    in_file = {} if config is None else read_config(config)
    settings, _ = resolve({"total_timesteps": timesteps}, in_file)
    ways = dict(_WAYS)
    if importlib.util.find_spec("wandb") is None:
        del ways["W&B, offline"]
    _run(settings, ways["none"])
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            runs[name].append(_run(settings, way))
    rows = -(-settings.num_updates // settings.log_interval)
    return Costs(settings, rows, runs)


def _run(settings: TrainConfig, way: tuple[bool, bool]) -> Run:
    tensorboard, wandb = way
    with tempfile.TemporaryDirectory() as folder:
        config = dataclasses.replace(
            settings, checkpoint_dir=Path(folder), tensorboard=tensorboard, wandb=wandb
        )
        offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
        with mock.patch.dict(os.environ, offline), _Clock(io.StringIO()) as clock:
            train(config, RunOptions(run_name="run"), clock)
        return Run(clock.ended - clock.began, _cpu_seconds() - clock.cpu)


class _Clock(Console):
    """Takes the time of a run's updates, and of all that is told of them."""

    began = ended = cpu = 0.0

    def begin(self, *args: Any, **kwargs: Any) -> None:
        self.began, self.cpu = time.perf_counter(), _cpu_seconds()
        super().begin(*args, **kwargs)

    def note(self, label: str, text: str) -> None:
        self.ended = time.perf_counter()  # the last note is that of the last checkpoint
        super().note(label, text)


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
