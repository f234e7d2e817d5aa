"""Measures the seconds from the start of a process to its first result, with and without cache."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.processes import python_module
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.research.bench.options import NUM_ENVS, CompileOptions

_LOOK = 0.005  # seconds between two checks for a result


class Times(NamedTuple):
    """Seconds to the first result in each repeat."""

    empty: list[float]  # the cache folder is empty
    filled: list[float]  # the previous run has filled it

    def as_dict(self) -> dict[str, float]:
        """Medians, for `--json`."""
        return {name: statistics.median(times) for name, times in self._asdict().items()}


class Compile(NamedTuple):
    """Seconds to the first result, by process, and the number of repeats."""

    times: dict[str, Times]
    repeats: int

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        from hackmatrix.core import machine

        return {
            "seconds": {what: times.as_dict() for what, times in self.times.items()},
            "repeats": self.repeats,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as a table."""
        width = max(map(len, self.times))
        lines = [f"{'seconds to the first result':<{width}}  empty cache  filled cache"]
        for what, times in self.times.items():
            medians = times.as_dict()
            lines.append(f"{what:<{width}} {medians['empty']:12.2f} {medians['filled']:13.2f}")
        return "\n".join(lines)


def measure(options: CompileOptions) -> Compile:
    """Times each process with an empty cache folder, and again with the folder that it filled."""
    times = {what: Times([], []) for what in _PROCESSES}
    for _ in range(options.repeats):
        for what, seconds in _PROCESSES.items():
            with tempfile.TemporaryDirectory() as folder:
                for kept in times[what]:
                    kept.append(seconds(Path(folder)))
    return Compile(times, options.repeats)


def _to_first_output(*argv: str) -> Callable[[Path], float]:
    """A function that times a process until it prints its first output."""
    return lambda folder: _seconds(argv, folder, lambda: bool(_output(folder).stat().st_size))


def _to_first_update(folder: Path) -> float:
    """Times `hackmatrix train` until the metrics of its first update are written."""
    runs = folder / f"runs-{time.time_ns()}"
    options = ["--log-interval", "1", "--total-timesteps", "1", "--checkpoint-dir", str(runs)]

    def is_there() -> bool:
        return any(path.stat().st_size for path in runs.glob("*/metrics.jsonl"))

    return _seconds(["hackmatrix", "train", *options], folder, is_there)


def _seconds(argv: Sequence[str], folder: Path, is_there: Callable[[], bool]) -> float:
    """Seconds until a new process of a module produces a result; it must then exit with code 0."""
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
    command = python_module(*argv)
    errors = folder / "errors"
    with _output(folder).open("wb") as out, errors.open("wb") as err:
        start = time.perf_counter()
        with subprocess.Popen(command, env=environment, stdout=out, stderr=err) as process:
            while not is_there() and process.poll() is None:
                time.sleep(_LOOK)
            seconds = time.perf_counter() - start
    if process.returncode or not is_there():
        last = (errors.read_text().strip().splitlines() or ["it made no result"])[-1]
        raise UserError(f"`{' '.join(argv)}` failed: {last}")
    return seconds


def _output(folder: Path) -> Path:
    return folder / "output"


_PROCESSES = {
    "hackmatrix --help": _to_first_output("hackmatrix", "--help"),
    "environment step": _to_first_output("hackmatrix.research.bench.compile", "step"),
    "hackmatrix evaluate, one game": _to_first_output(
        "hackmatrix", "evaluate", "shipped", "--episodes", "1"
    ),
    "training update": _to_first_output("hackmatrix.research.bench.compile", "update"),
    "hackmatrix train, first update": _to_first_update,
}


def step() -> None:
    """Starts games and takes one action in each."""
    import jax
    import jax.numpy as jnp

    env = HackMatrixEnv()
    streams = jnp.arange(NUM_ENVS, dtype=jnp.uint32)
    _, state = jax.jit(jax.vmap(env.reset_game, (0, None)))(streams, jnp.uint32(0))
    actions = jnp.zeros(NUM_ENVS, jnp.int32)
    take = jax.jit(jax.vmap(env.step, (None, 0, 0)), donate_argnums=1)
    jax.block_until_ready(take(None, state, actions))


def update() -> None:
    """Runs one training update with the default settings."""
    import jax

    from hackmatrix.learning.settings.config import TrainConfig
    from hackmatrix.learning.trainer.trainer import Trainer

    config, env = TrainConfig(), HackMatrixEnv()
    trainer = Trainer(env, config.learning, config.network)
    jax.block_until_ready(trainer.run(trainer.start(0), 1))


if __name__ == "__main__":
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    {"step": step, "update": update}[sys.argv[1]]()
    print("the first result", flush=True)
