"""Memory of training: rollout buffers, the process, and XLA's temporary buffers."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import hackmatrix
from hackmatrix.bench.settings import train_config
from hackmatrix.learner import ppo
from hackmatrix.learner.keys import UpdateKeys
from hackmatrix.learner.rollout import Rollout, play
from hackmatrix.learner.trainer import Trainer, TrainState
from hackmatrix.runs import machine
from hackmatrix.settings.config import TrainConfig

Array = jax.Array


class Memory(NamedTuple):
    """What was measured."""

    config: TrainConfig
    bytes_per_transition: float  # of a rollout and its advantages
    peak_rss: int  # bytes, of a fresh process that compiles and trains for some updates
    xla_temporary: int | None  # bytes, of the compiled update; None where XLA can't tell

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "num_envs": self.config.num_envs,
            "num_steps": self.config.num_steps,
            "bytes_per_transition": self.bytes_per_transition,
            "peak_rss": self.peak_rss,
            "xla_temporary": self.xla_temporary,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """For people."""
        temporary = "unknown"
        if self.xla_temporary is not None:
            temporary = f"{self.xla_temporary / 1e6:,.0f} MB"
        return (
            f"{self.config.num_envs} x {self.config.num_steps} transitions of "
            f"{self.bytes_per_transition:.0f} bytes, advantages included (returns are made where "
            "they are read)\n"
            f"peak memory of a fresh training process {self.peak_rss / 1e6:,.0f} MB, compiling "
            f"included; XLA's temporary buffers {temporary}"
        )


def measure(
    num_envs: int = 2_048,
    num_steps: int = 128,
    epochs: int | None = None,
    minibatches: int | None = None,
    updates: int = 2,
    dtype: str = "float32",
    observation: str = "classic",
) -> Memory:
    """Compiles and trains in a fresh process, which tells its peak."""
    settings = (num_envs, num_steps, epochs, minibatches, dtype, observation)
    config = train_config(*settings)
    command = [sys.executable, "-m", __name__, json.dumps(settings), str(updates)]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return Memory(config, _rollout_bytes(config) / config.batch_size, **told)


def _rollout_bytes(config: TrainConfig) -> int:
    """Bytes of all arrays that a rollout hands to learning."""
    trainer = Trainer(hackmatrix.make(observation=config.observation), config)

    def buffers(state: TrainState) -> tuple[Rollout, Array]:
        keys = UpdateKeys(state.seed, state.update)
        numbers = jnp.arange(config.num_envs)
        _, rollout = play(trainer.task, state.params, state.games, keys, numbers)
        return rollout, ppo.batch_of(rollout, jnp.ones(()), config).samples.advantage

    shapes = jax.eval_shape(buffers, jax.eval_shape(trainer.init, config.seed))
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))


def _train(config: TrainConfig, updates: int) -> dict[str, int | None]:
    """Trains here, and tells the process's peak and XLA's temporary buffers in bytes."""
    trainer = Trainer(hackmatrix.make(observation=config.observation), config)
    state = trainer.init(config.seed)
    run = jax.jit(trainer.run, donate_argnums=0).lower(state, jnp.int32(0)).compile()
    for _ in range(updates):
        state = jax.block_until_ready(run(state, jnp.int32(1)))
    analysis = run.memory_analysis()
    temporary = analysis.temp_size_in_bytes if analysis else None
    return {"peak_rss": _peak_rss(), "xla_temporary": temporary}


def _peak_rss() -> int:
    """Bytes. Linux's getrusage would count the process that started this one as well."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


if __name__ == "__main__":
    print(json.dumps(_train(train_config(*json.loads(sys.argv[1])), int(sys.argv[2]))))
