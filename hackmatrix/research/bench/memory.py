"""Measures the memory of training: rollout buffers, the process, and XLA's temporary buffers."""

import dataclasses
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.core import machine
from hackmatrix.core.processes import python_module
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.batches import with_advantages
from hackmatrix.learning.trainer.keys import UpdateKeys
from hackmatrix.learning.trainer.rollout import Rollout, play
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.research.bench.options import MemoryOptions, train_config

Array = jax.Array


class MemoryUse(NamedTuple):
    """Bytes per transition, of the process and of XLA's temporary buffers."""

    config: TrainConfig
    bytes_per_transition: float  # rollout and advantages together
    peak_rss: int  # bytes, of a new process that compiles and runs some updates
    xla_temporary: int | None  # bytes, of the compiled update; None if XLA does not say

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "num_envs": self.config.learning.num_envs,
            "num_steps": self.config.learning.num_steps,
            "bytes_per_transition": self.bytes_per_transition,
            "peak_rss": self.peak_rss,
            "xla_temporary": self.xla_temporary,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        temporary = "unknown"
        if self.xla_temporary is not None:
            temporary = f"{self.xla_temporary / 1e6:,.0f} MB"
        return (
            f"{self.config.learning.num_envs} x {self.config.learning.num_steps} transitions of "
            f"{self.bytes_per_transition:.0f} bytes, advantages included\n"
            f"peak memory of a new training process {self.peak_rss / 1e6:,.0f} MB, compiling "
            f"included; XLA's temporary buffers {temporary}"
        )


def measure(options: MemoryOptions) -> MemoryUse:
    """Compiles and trains in a new process, which reports its peak memory."""
    config = train_config(options)
    command = python_module(__name__, json.dumps(dataclasses.asdict(options)))
    measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return MemoryUse(config, _rollout_bytes(config) / config.learning.batch_size, **measured)


def _rollout_bytes(config: TrainConfig) -> int:
    """Bytes of all arrays that the rollout keeps for the epochs."""
    trainer = Trainer(config.environment.make(), config.learning, config.network)

    def buffers(state: TrainState) -> tuple[Rollout, Array]:
        keys = UpdateKeys(state.seed, state.update)
        numbers = jnp.arange(config.learning.num_envs)
        _, rollout = play(
            *(trainer.setup, trainer.algorithm, state.params, state.games),
            *(keys, numbers, trainer.hyper),
        )
        return rollout, with_advantages(rollout, trainer.hyper).samples.advantage

    shapes = jax.eval_shape(buffers, jax.eval_shape(trainer.init, config.run.seed))
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))


def _train(config: TrainConfig, updates: int) -> dict[str, int | None]:
    """Trains in this process; returns its peak memory and XLA's temporary buffers in bytes."""
    trainer = Trainer(config.environment.make(), config.learning, config.network)
    state = trainer.init(config.run.seed)
    run = jax.jit(trainer.run, donate_argnums=0).lower(state, jnp.int32(0)).compile()
    for _ in range(updates):
        state = jax.block_until_ready(run(state, jnp.int32(1)))
    analysis = run.memory_analysis()
    temporary = analysis.temp_size_in_bytes if analysis else None
    return {"peak_rss": _peak_rss(), "xla_temporary": temporary}


def _peak_rss() -> int:
    """Peak memory in bytes. On Linux, getrusage would include the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


if __name__ == "__main__":
    watched = MemoryOptions(**json.loads(sys.argv[1]))
    print(json.dumps(_train(train_config(watched), watched.updates)))
