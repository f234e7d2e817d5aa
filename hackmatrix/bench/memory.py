"""Memory of training: rollout buffers, the process, and XLA's temporary buffers."""

from typing import Any, NamedTuple

import jax

import hackmatrix
from hackmatrix.bench.train import bench_config
from hackmatrix.training.config import TrainConfig


class Memory(NamedTuple):
    """What was measured."""

    config: TrainConfig
    bytes_per_transition: float  # all buffers of a rollout, advantages and returns
    peak_rss: int  # bytes, of a fresh process that trains for two updates
    xla_temporary: int  # bytes, of the compiled update

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "num_envs": self.config.num_envs,
            "num_steps": self.config.num_steps,
            "bytes_per_transition": self.bytes_per_transition,
            "peak_rss": self.peak_rss,
            "xla_temporary": self.xla_temporary,
            "device": jax.devices()[0].device_kind,
            "versions": {"hackmatrix": hackmatrix.__version__, "jax": jax.__version__},
        }

    def text(self) -> str:
        """For people."""
        return (
            f"{self.config.num_envs} x {self.config.num_steps} transitions of "
            f"{self.bytes_per_transition:.0f} bytes, advantages and returns included\n"
            f"peak memory of a fresh training process {self.peak_rss / 1e6:,.0f} MB, XLA's "
            f"temporary buffers {self.xla_temporary / 1e6:,.0f} MB"
        )


def measure(
    num_envs: int = 2_048,
    num_steps: int = 128,
    epochs: int | None = None,
    minibatches: int | None = None,
    dtype: str = "float32",
    observation: str = "classic",
) -> Memory:
    """Trains in a fresh process, and asks XLA about the same update."""
    config = bench_config(num_envs, num_steps, epochs, minibatches, dtype, observation)
    raise NotImplementedError(config)
