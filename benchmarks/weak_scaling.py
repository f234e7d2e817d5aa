"""Weak scaling over processes: each has a core and the same number of games of its own.

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
from hackmatrix.bench.options import Options
from hackmatrix.errors import UserError
from hackmatrix.options import option
from hackmatrix.runs import machine
from hackmatrix.runs.rows import read_metrics

_WARM = 2  # updates before the timed ones


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
    """The speed of some processes that train together."""

    processes: int
    steps_per_second: float  # median of the updates
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
            "|---:|---:|---:|---:|---:|",
        ]
        for n, steps, seconds in self.speeds:
            by_time = one.cpu_seconds_per_million / seconds
            rows.append(
                f"| {n} | {steps:,.0f} | {steps / one.steps_per_second / n:.0%} | {seconds:.1f} s "
                f"| {by_time:.0%} |"
            )
        return "\n".join(rows)


def measure(options: ScalingOptions) -> Scaling:
    """Trains with 1, 2, 4, ... processes, one after another."""
    counts = [2**k for k in range(options.processes.bit_length())]
    return Scaling([_speed(n, options) for n in counts if n <= options.processes])


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


def _speed(count: int, options: ScalingOptions) -> Speed:
    with tempfile.TemporaryDirectory() as folder, _training(Path(folder), count, options) as pids:
        run = Path(folder, "run")
        before = _times(run, pids, _WARM)
        after = _times(run, pids, _WARM + options.updates)
        rows = [row for row in read_metrics(run) if row["update"] > _WARM][: options.updates]
    steps = options.updates * count * options.num_envs * options.num_steps
    return Speed(
        count,
        statistics.median(row["train/steps_per_second"] for row in rows),
        (after - before) / steps * 1e6,
    )


@contextlib.contextmanager
def _training(folder: Path, count: int, options: ScalingOptions) -> Iterator[list[int]]:
    """Processes that train, by number, until the end of the context."""
    words = [sys.executable, "-m", "hackmatrix", "train", "--output-dir", str(folder / "run")]
    settings = {
        "env": options.env,
        "num-envs": count * options.num_envs,
        "num-steps": options.num_steps,
        "num-minibatches": options.minibatches,
        "update-epochs": options.epochs,
        "lr": 2.5e-4,
        "total-timesteps": 10**12,
        "log-interval": 1,
        "device": "cpu",
    }
    words += [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    words += ["--no-wandb", "--no-tensorboard"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{probe.getsockname()[1]}"
    started = []
    cores = sorted(os.sched_getaffinity(0))
    try:
        for index in range(count):
            place = ["--distributed", "--coordinator", coordinator]
            place += ["--num-processes", str(count), "--process-id", str(index)]
            with (folder / f"{index}.log").open("w") as log:
                os.sched_setaffinity(0, {cores[index % len(cores)]})  # the child has it too
                started.append(
                    subprocess.Popen(
                        words + (place if count > 1 else []), stdout=log, stderr=subprocess.STDOUT
                    )
                )
        os.sched_setaffinity(0, cores)
        yield [each.pid for each in started]
    finally:
        os.sched_setaffinity(0, cores)
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def _times(run: Path, pids: list[int], update: int) -> float:
    """Seconds of processor time of the processes and their children when an update is made."""
    while not any(row["update"] >= update for row in read_metrics(run)):
        for pid in pids:
            if _fields(pid)[0] == "Z":  # it has ended
                log = run.parent / f"{pids.index(pid)}.log"
                raise UserError(f"a training has ended: {log.read_text()[-1000:]}")
        time.sleep(0.02)
    return sum(_seconds(pid) + sum(map(_seconds, _children(pid))) for pid in pids)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _seconds(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[str]:
    """What Linux tells of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


if __name__ == "__main__":
    sys.exit(main())
