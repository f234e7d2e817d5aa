"""Weak scaling over processes: each has a core and the same number of games of its own.

Processes that train apart, and know nothing of each other, show what the machine loses when more of
its cores are busy: caches, memory, clock. Between them and those that train together lies what
training together costs.

The processor time of a step leaves out most of the time that a process waits for others, so it
says something on a machine that is not quiet. Processes that share a core take some of it to wait.
"""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options
from hackmatrix.runs.metrics_file import read_metrics

_WARM = 2  # updates before the timed ones

Trainings = dict[Path, dict[int, Path]]  # runs, each with the logs of its processes, by their ids


@dataclass(frozen=True)
class ScalingOptions(Options):
    """The options of the command."""

    processes: int = option(
        2,
        "most processes, each on a core if there are enough; before them 1, 2, 4, ...",
        at_least=2,
    )
    env: str = option("HackMatrix", "environment to train on")
    num_envs: int = option(512, "games of each process", at_least=1)
    num_steps: int = option(128, "steps of each game in an update", at_least=1)
    minibatches: int = option(4, "minibatches of a batch, however many processes", at_least=1)
    epochs: int = option(4, "passes over a batch", at_least=1)
    updates: int = option(10, f"timed updates, after {_WARM} others", at_least=1)


class Speed(NamedTuple):
    """The speed of some processes that train at once."""

    processes: int
    together: bool  # one run; otherwise each has a run of its own
    steps_per_second: float  # of all processes, by the median of the updates
    cpu_seconds_per_million: float  # processor time of all processes for a million steps


class Scaling(NamedTuple):
    """The speeds, from one process on."""

    speeds: list[Speed]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {"speeds": [speed._asdict() for speed in self.speeds], **machine.machine()}

    def text(self) -> str:
        """The figures as a table in Markdown."""
        one = self.speeds[0]
        rows = [
            "| processes | steps/s | efficiency | processor time of 1M steps | efficiency by it |",
            "|---|---:|---:|---:|---:|",
        ]
        for n, together, steps, seconds in self.speeds:
            kind = "" if n == 1 else " together" if together else " apart"
            by_clock = steps / one.steps_per_second / n
            by_time = one.cpu_seconds_per_million / seconds
            rows.append(
                f"| {n}{kind} | {steps:,.0f} | {100 * by_clock:.0f} % "
                f"| {seconds:.1f} s | {100 * by_time:.0f} % |"
            )
        return "\n".join(rows)


def measure(options: ScalingOptions) -> Scaling:
    """Trains with 1, 2, 4, ... processes, one after another; several first apart, then together."""
    counts = [2**k for k in range(options.processes.bit_length())]
    kinds = [
        (n, together)
        for n in counts
        if n <= options.processes
        for together in ([True] if n == 1 else [False, True])
    ]
    return Scaling([_speed(n, together, options) for n, together in kinds])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "weak_scaling",
        measure,
        ScalingOptions,
        argv,
        purpose="Measures the speed of training in several processes on the cores of this machine.",
        example="--processes 4\n      1, 2 and 4 processes, with 512 games each",
    )


def _speed(count: int, together: bool, options: ScalingOptions) -> Speed:
    with (
        tempfile.TemporaryDirectory() as folder,
        _training(Path(folder), count, together, options) as trainings,
    ):
        first, last = _WARM, _WARM + options.updates
        before, after = _processor_time(trainings, first), _processor_time(trainings, last)
        speeds = [
            statistics.median(
                row["train/steps_per_second"]
                for row in read_metrics(run)
                if first < row["update"] <= last
            )
            for run in trainings
        ]
    steps = options.updates * count * options.num_envs * options.num_steps
    return Speed(count, together, sum(speeds), (after - before) / steps * 1e6)


@contextlib.contextmanager
def _training(
    folder: Path, count: int, together: bool, options: ScalingOptions
) -> Iterator[Trainings]:
    """Processes that train until the end of the context, each on the next core."""
    cores = sorted(os.sched_getaffinity(0))
    coordinator = f"127.0.0.1:{_free_port()}"
    started = []
    trainings: Trainings = {}
    try:
        for index in range(count):
            run, place = folder / f"run{index}", []
            if together and count > 1:
                run = folder / "run"
                place = ["--distributed", "--coordinator", coordinator]
                place += ["--num-processes", str(count), "--process-id", str(index)]
            games = options.num_envs * (count if together else 1)
            os.sched_setaffinity(0, {cores[index % len(cores)]})  # the child has it too
            with (folder / f"{index}.log").open("w") as log:
                words = [*_command(run, games, options), *place]
                started.append(subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT))
            trainings.setdefault(run, {})[started[-1].pid] = folder / f"{index}.log"
        os.sched_setaffinity(0, cores)
        yield trainings
    finally:
        os.sched_setaffinity(0, cores)
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def _command(run: Path, games: int, options: ScalingOptions) -> list[str]:
    settings = {
        "output-dir": run,
        "env": options.env,
        "num-envs": games,
        "num-steps": options.num_steps,
        "num-minibatches": options.minibatches,
        "update-epochs": options.epochs,
        "lr": 2.5e-4,
        "total-timesteps": 10**12,
        "log-interval": 1,
        "device": "cpu",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    words += ["--no-wandb", "--no-tensorboard"]
    return [sys.executable, "-m", "hackmatrix", "train", *words]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _processor_time(trainings: Trainings, update: int) -> float:
    """Seconds that the processes and their children have used when their runs made an update."""
    used: dict[Path, float] = {}
    while len(used) < len(trainings):
        time.sleep(0.05)
        for run, processes in trainings.items():
            for pid, log in processes.items():
                if _fields(pid)[0] == "Z":  # it has ended
                    raise UserError(f"a training has ended: {log.read_text()[-1000:]}")
            if run not in used and any(row["update"] >= update for row in read_metrics(run)):
                used[run] = sum(_seconds(n) for pid in processes for n in (pid, *_children(pid)))
    return sum(used.values())


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _seconds(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[str]:
    """Linux's facts about a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


if __name__ == "__main__":
    sys.exit(main())
