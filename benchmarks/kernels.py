"""Speed of training updates on this device, and its kernels by time.

Times updates after one that compiles, then profiles one more with JAX's profiler. On GPUs the
events of the profile are kernels; on CPUs they are XLA's operations.
"""

import gzip
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax

from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.options import option
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.bench.options import Options

_SHOWN = 40


@dataclass(frozen=True)
class KernelOptions(Options):
    """The options of the command."""

    config: str = option("further_gpu", "settings of the training, as for `hackmatrix train`")
    engine: Literal["auto", "native", "jax"] = option("auto", "engine of the games")
    num_envs: int | None = option(None, "games in parallel; by default the file's", at_least=1)
    num_minibatches: int | None = option(None, "by default the file's", at_least=1)
    repeats: int = option(5, "timed updates, after one that compiles", at_least=1)


class Kernels(NamedTuple):
    """Speed of updates, and the kernels of one."""

    options: KernelOptions
    compile_seconds: float  # tracing, compiling and the first update
    rates: list[float]  # steps/s of each update
    seconds: dict[str, float]  # of each kernel in one update, by name
    launches: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "config": self.options.config,
            "engine": self.options.engine,
            "compile_seconds": self.compile_seconds,
            "median": statistics.median(self.rates),
            "min": min(self.rates),
            "max": max(self.rates),
            "launches": sum(self.launches.values()),
            "kernel_seconds": sum(self.seconds.values()),
            "kernels": {
                name: [self.launches[name], seconds] for name, seconds in self._by_time()[:_SHOWN]
            },
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        it = self.as_dict()
        lines = [
            f"{it['median']:,.0f} training steps/s ({it['min']:,.0f} to {it['max']:,.0f}), "
            f"{it['config']}, {it['engine']} engine; first update after "
            f"{it['compile_seconds']:.1f} s",
            f"{it['launches']:,} kernels of an update take {it['kernel_seconds']:.4f} s",
        ]
        for name, (launches, seconds) in it["kernels"].items():
            share = seconds / it["kernel_seconds"]
            each = 1e6 * seconds / launches
            lines.append(f"{share:7.1%} {launches:7,} x {each:9.1f} us  {name:.90}")
        return "\n".join([*lines, machine.line(it, it["versions"])])

    def _by_time(self) -> list[tuple[str, float]]:
        return sorted(self.seconds.items(), key=lambda item: -item[1])


def measure(options: KernelOptions) -> Kernels:
    """Times and profiles updates of a training."""
    flags = {"num_envs": options.num_envs, "num_minibatches": options.num_minibatches}
    chosen = {name: value for name, value in flags.items() if value is not None}
    config, _ = resolve(chosen, read_config(Path(options.config)))
    env = config.environment.for_training(config.environment.make(engine=options.engine))
    start = time.perf_counter()
    trainer = Trainer(env, config.learning, config.network, jax.devices()[:1])
    state = jax.block_until_ready(trainer.run(trainer.init(config.run.seed), 1))
    compile_seconds = time.perf_counter() - start
    rates = []
    for _ in range(options.repeats):
        start = time.perf_counter()
        state = jax.block_until_ready(trainer.run(state, 1))
        rates.append(config.learning.batch_size / (time.perf_counter() - start))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(trainer.run(state, 1))
        trace = next(Path(folder).rglob("*.trace.json.gz"))
        events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    seconds, launches = defaultdict[str, float](float), Counter[str]()
    for name, duration in kernels_of(events):
        seconds[name] += duration
        launches[name] += 1
    return Kernels(options, compile_seconds, rates, dict(seconds), dict(launches))


def kernels_of(events: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Name and seconds of what ran on streams of the device; on a CPU, of XLA's operations."""
    threads = {
        (event["pid"], event.get("tid")): event["args"]["name"]
        for event in events
        if event.get("name") == "thread_name"
    }
    kernels = []
    for event in events:
        of_stream = threads.get((event.get("pid"), event.get("tid")), "").startswith("Stream")
        if "dur" in event and (of_stream or "hlo_op" in event.get("args", {})):
            name = re.sub(r"[._]\d+$", "", event["name"])
            kernels.append((name, event["dur"] * 1e-6))
    return kernels


def main(argv: Sequence[str] | None = None) -> int:
    """Measures with the options of the command line."""
    return run_command(
        "kernels",
        measure,
        KernelOptions,
        argv,
        purpose="Times training updates on this device, and lists the kernels of one by time.",
        example="--config fast\n      updates of `hackmatrix train --config fast`",
    )


if __name__ == "__main__":
    sys.exit(main())
